"""What a host has to know of a framework; one module per framework, sent to hosts as text and never imported here."""
