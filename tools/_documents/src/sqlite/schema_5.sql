-- Who works through the passages with a model at the moment, and until when that counts (Unix time), so that no two servers do it at once.
CREATE TABLE claim (
    work TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT;
