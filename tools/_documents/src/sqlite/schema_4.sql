-- How much of the document is kept, in bytes: its passages, the words that they are found by, and its metadata.
ALTER TABLE document ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
UPDATE document SET kept = max(bytes, length(metadata) + coalesce(
    (SELECT sum(2 * length(CAST(text AS BLOB)) + 2 * length(CAST(section AS BLOB))) FROM chunk WHERE document = document.id), 0
));
