"""One stage, one file, one public function: typed input to a typed receipt."""
