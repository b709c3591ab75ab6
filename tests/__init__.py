"""The tests, in folders as the package has them."""
