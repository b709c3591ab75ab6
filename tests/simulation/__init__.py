"""Jobs whose root cause and true cost are known, and what the first screen says of them."""
