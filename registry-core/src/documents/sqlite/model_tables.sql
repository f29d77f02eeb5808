-- What models make of the passages.

-- The passages from which a model has drawn names and relations.
CREATE TABLE IF NOT EXISTS extraction (
    chunk INTEGER PRIMARY KEY REFERENCES chunk (id) ON DELETE CASCADE,
    model TEXT NOT NULL
) STRICT;
