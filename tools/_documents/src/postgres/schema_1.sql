-- Words by their stem, none left out: which say nothing is decided where a question is read.
CREATE TEXT SEARCH DICTIONARY toolrack_stem (TEMPLATE = pg_catalog.snowball, LANGUAGE = english);
CREATE TEXT SEARCH CONFIGURATION toolrack_words (COPY = pg_catalog.english);
ALTER TEXT SEARCH CONFIGURATION toolrack_words ALTER MAPPING REPLACE pg_catalog.english_stem WITH toolrack_stem;

-- Paths and times are compared byte by byte, whatever the database's language.
CREATE TABLE document (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    passages BIGINT NOT NULL,
    words BIGINT NOT NULL,
    language TEXT,
    modified TEXT COLLATE "C",
    added TEXT COLLATE "C" NOT NULL,
    hash TEXT NOT NULL,
    metadata TEXT NOT NULL
);
CREATE UNIQUE INDEX document_of_path ON document (tenant, path) INCLUDE (passages, words);

CREATE TABLE document_chunk (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document BIGINT NOT NULL REFERENCES document ON DELETE CASCADE,
    ordinal BIGINT NOT NULL,
    section TEXT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (document, ordinal)
);

-- Beside the passages, so that ranking reads no texts; and in the row itself, where they would else be packed and put aside.
CREATE TABLE document_words (
    chunk BIGINT PRIMARY KEY REFERENCES document_chunk ON DELETE CASCADE,
    tenant TEXT COLLATE "C" NOT NULL,
    length BIGINT NOT NULL,
    words TSVECTOR NOT NULL
) WITH (toast_tuple_target = 8160);
CREATE INDEX document_words_index ON document_words USING GIN (words);

CREATE TABLE document_entity (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    UNIQUE (tenant, key)
);

CREATE TABLE document_mention (
    entity BIGINT NOT NULL REFERENCES document_entity ON DELETE CASCADE,
    chunk BIGINT NOT NULL REFERENCES document_chunk ON DELETE CASCADE,
    times BIGINT NOT NULL,
    PRIMARY KEY (entity, chunk)
);
CREATE INDEX document_mention_of_chunk ON document_mention (chunk);

CREATE TABLE document_relation (
    subject BIGINT NOT NULL REFERENCES document_entity ON DELETE CASCADE,
    relation TEXT NOT NULL,
    object BIGINT NOT NULL REFERENCES document_entity ON DELETE CASCADE,
    chunk BIGINT NOT NULL REFERENCES document_chunk ON DELETE CASCADE,
    PRIMARY KEY (subject, relation, object, chunk)
);
CREATE INDEX document_relation_of_object ON document_relation (object);
CREATE INDEX document_relation_of_chunk ON document_relation (chunk);

-- The passages that a model has been through.
CREATE TABLE document_extraction (
    chunk BIGINT PRIMARY KEY REFERENCES document_chunk ON DELETE CASCADE,
    model TEXT NOT NULL
);

-- The vector of a passage: numbers of 32 bits, little-endian, as a vector of length 1. One without numbers says that the model could
-- not read the passage.
CREATE TABLE document_embedding (
    chunk BIGINT PRIMARY KEY REFERENCES document_chunk ON DELETE CASCADE,
    tenant TEXT COLLATE "C" NOT NULL,
    model TEXT NOT NULL,
    dimensions BIGINT NOT NULL,
    -- Which write it is of; see `document_vector_change`.
    change BIGINT NOT NULL,
    vector BYTEA NOT NULL
);
-- So that vectors are counted and missed without being read.
CREATE INDEX document_embedding_of_model ON document_embedding (tenant, model, dimensions, change, chunk);

-- Counts the writes, so that whoever has vectors in memory sees whether there are others.
CREATE TABLE document_vector_change (
    tenant TEXT COLLATE "C" PRIMARY KEY,
    number BIGINT NOT NULL
);
