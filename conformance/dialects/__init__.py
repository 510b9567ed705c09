"""Tables that turn the vocabulary into a framework's own words; one module per framework."""
