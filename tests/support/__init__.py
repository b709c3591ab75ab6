"""What tests share: logs in a few words, servers, readers of documents."""
