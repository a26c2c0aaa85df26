"""The Pulumi program: what one admitted fleet is made of."""
