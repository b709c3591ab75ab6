"""The command line: it parses options, calls the library, and passes the answer to a renderer."""
