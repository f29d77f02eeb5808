-- Vectors are compared in SQL and no longer held in memory, so no write of them has a number.
DROP TRIGGER embedding_removed;
DROP TABLE vector_change;
DROP INDEX embedding_of_model;
ALTER TABLE embedding DROP COLUMN change;
CREATE INDEX embedding_of_model ON embedding (model, chunk);

-- The graph is what a model extracted. What was guessed from the form of a text goes: all that passages have that no model has read,
-- and the links.
DELETE FROM relation WHERE relation = 'links_to' OR chunk NOT IN (SELECT chunk FROM extraction);
DELETE FROM mention WHERE chunk NOT IN (SELECT chunk FROM extraction)
OR entity IN (SELECT id FROM entity WHERE kind IN ('link', 'document'));
DELETE FROM entity WHERE id NOT IN (SELECT entity FROM mention);
ALTER TABLE mention DROP COLUMN times;
