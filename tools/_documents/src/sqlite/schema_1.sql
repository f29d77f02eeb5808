CREATE TABLE document (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    passages INTEGER NOT NULL,
    language TEXT,
    modified TEXT,
    added TEXT NOT NULL,
    hash TEXT NOT NULL,
    metadata TEXT NOT NULL
) STRICT;

CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    section TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (document, ordinal)
) STRICT;

-- The words of the passages; the passages themselves are in `chunk`, under the same number.
CREATE VIRTUAL TABLE chunk_words USING fts5 (
    title, section, text,
    content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER chunk_removed AFTER DELETE ON chunk BEGIN
    DELETE FROM chunk_words WHERE rowid = old.id;
END;

CREATE TABLE entity (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    kind TEXT NOT NULL
) STRICT;

CREATE TABLE mention (
    entity INTEGER NOT NULL REFERENCES entity (id) ON DELETE CASCADE,
    chunk INTEGER NOT NULL REFERENCES chunk (id) ON DELETE CASCADE,
    times INTEGER NOT NULL,
    PRIMARY KEY (entity, chunk)
) STRICT, WITHOUT ROWID;

CREATE INDEX mention_of_chunk ON mention (chunk);

CREATE TABLE relation (
    id INTEGER PRIMARY KEY,
    subject INTEGER NOT NULL REFERENCES entity (id) ON DELETE CASCADE,
    relation TEXT NOT NULL,
    object INTEGER NOT NULL REFERENCES entity (id) ON DELETE CASCADE,
    chunk INTEGER NOT NULL REFERENCES chunk (id) ON DELETE CASCADE,
    UNIQUE (subject, relation, object, chunk)
) STRICT;

CREATE INDEX relation_of_object ON relation (object);
CREATE INDEX relation_of_chunk ON relation (chunk);

-- What tools may ask about documents in SQL.
CREATE VIEW documents AS
SELECT path, title, kind, bytes, passages, language, modified, added, hash, metadata FROM document;
