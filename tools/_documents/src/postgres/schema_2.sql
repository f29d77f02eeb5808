-- Passages are ranked by PostgreSQL itself, which counts no words beforehand.
DROP INDEX document_of_path;
ALTER TABLE document DROP COLUMN words;
CREATE UNIQUE INDEX document_of_path ON document (tenant, path);
ALTER TABLE document_words DROP COLUMN length;

-- The vector of a passage, of length 1. One without numbers says that the model could not read the passage. Vectors that were kept as
-- bytes are made anew.
DROP TABLE document_vector_change;
DROP TABLE document_embedding;
CREATE TABLE document_embedding (
    chunk BIGINT PRIMARY KEY REFERENCES document_chunk ON DELETE CASCADE,
    tenant TEXT COLLATE "C" NOT NULL,
    model TEXT NOT NULL,
    dimensions BIGINT NOT NULL,
    vector REAL[] NOT NULL
);
-- So that vectors are missed without being read.
CREATE INDEX document_embedding_of_model ON document_embedding (tenant, model, chunk);

-- The graph is what a model extracted. What was guessed from the form of a text goes: all that passages have that no model has read,
-- and the links.
DELETE FROM document_relation AS it
WHERE relation = 'links_to' OR NOT EXISTS (SELECT 1 FROM document_extraction WHERE chunk = it.chunk);
DELETE FROM document_mention AS it
WHERE NOT EXISTS (SELECT 1 FROM document_extraction WHERE chunk = it.chunk)
OR entity IN (SELECT id FROM document_entity WHERE kind IN ('link', 'document'));
DELETE FROM document_entity AS it WHERE NOT EXISTS (SELECT 1 FROM document_mention WHERE entity = it.id);
ALTER TABLE document_mention DROP COLUMN times;
