"""Submit many recordings and fetch their transcripts, each paid for once."""
