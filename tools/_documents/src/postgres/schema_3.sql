-- How much of the document is kept, in bytes: its passages, the words that they are found by, and its metadata.
ALTER TABLE document ADD COLUMN kept BIGINT NOT NULL DEFAULT 0;
UPDATE document AS it SET kept = greatest(bytes, length(metadata) + coalesce(
    (SELECT sum(2 * octet_length(text) + 2 * octet_length(section)) FROM document_chunk WHERE document = it.id), 0
));
