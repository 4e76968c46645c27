"""What tests of every floor share: our server to call, and bounded waiting."""
