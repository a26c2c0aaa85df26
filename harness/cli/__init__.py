"""The command line: parse, print, exit. Only here."""
