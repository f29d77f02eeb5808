-- What models make of the passages.

-- The vector of a passage. One without numbers says that the model could not read the passage.
CREATE TABLE IF NOT EXISTS embedding (
    chunk INTEGER PRIMARY KEY REFERENCES chunk (id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    -- Which write it is of; see `vector_change`.
    change INTEGER NOT NULL,
    -- Numbers of 32 bits, little-endian, as a vector of length 1.
    vector BLOB NOT NULL
) STRICT;

-- So that vectors are counted and missed without being read.
CREATE INDEX IF NOT EXISTS embedding_of_model ON embedding (model, chunk, dimensions, change);

-- Counts the writes, so that whoever has vectors in memory sees whether there are others, of whichever process.
CREATE TABLE IF NOT EXISTS vector_change (number INTEGER NOT NULL) STRICT;
INSERT INTO vector_change SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM vector_change);

CREATE TRIGGER IF NOT EXISTS embedding_removed AFTER DELETE ON embedding BEGIN
    UPDATE vector_change SET number = number + 1;
END;

-- The highest number that a passage has had. What a model says of a passage must not be kept as of another one that took its number.
CREATE TABLE IF NOT EXISTS chunk_number (highest INTEGER NOT NULL) STRICT;
INSERT INTO chunk_number SELECT coalesce((SELECT max(id) FROM chunk), 0) WHERE NOT EXISTS (SELECT 1 FROM chunk_number);

-- The passages from which a model has drawn names and relations.
CREATE TABLE IF NOT EXISTS extraction (
    chunk INTEGER PRIMARY KEY REFERENCES chunk (id) ON DELETE CASCADE,
    model TEXT NOT NULL
) STRICT;
