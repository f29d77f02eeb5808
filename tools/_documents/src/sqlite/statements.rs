//! The statements for a file. It is one tenant's, so that none asks for $1.

use crate::database::Sql;

pub(super) const SQL: Sql = Sql {
    has: "SELECT EXISTS (SELECT 1 FROM document WHERE path = $2 AND hash = $3)",
    known: "SELECT id, hash FROM document WHERE path = $2",
    remove_known: "DELETE FROM document WHERE id = $2",
    remove: "DELETE FROM document WHERE path = $2 OR substr(path, 1, length($3)) = $3 RETURNING path",
    remove_unmentioned: "DELETE FROM entity WHERE NOT EXISTS (SELECT 1 FROM mention WHERE entity = entity.id)",
    add: "
        INSERT INTO document (path, title, kind, bytes, passages, language, modified, added, hash, metadata, kept)
        VALUES ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id",
    add_passages: &[
        "INSERT INTO chunk (id, document, ordinal, section, first, last, text)
        SELECT highest + 1 + key, $2, key, value ->> 'section', value ->> 'first', value ->> 'last', value ->> 'text'
        FROM json_each($3), chunk_number",
        "UPDATE chunk_number SET highest = highest + json_array_length($3)",
        "INSERT INTO chunk_words (rowid, title, section, text)
        SELECT chunk.id, $4, value ->> 'section_words', value ->> 'text_words'
        FROM json_each($3) CROSS JOIN chunk ON chunk.document = $2 AND chunk.ordinal = key",
    ],
    list: "SELECT * FROM document WHERE TRUE",
    listed: "
        SELECT path, title, kind, bytes, passages, language, modified, added, hash, '{}' AS metadata
        FROM document WHERE TRUE",
    count: "SELECT count(*) FROM document WHERE TRUE",
    kept: "
        SELECT count(*), coalesce(sum(kept), 0)
            + 4 * coalesce(sum(passages), 0) * coalesce((SELECT dimensions FROM embedding ORDER BY chunk DESC LIMIT 1), 0)
        FROM document WHERE substr(path, 1, length($2)) = $2 AND path <> $3",
    // What a word weighs in the title, in the section and in the text.
    matching: "
        FROM (SELECT rowid AS id, -bm25(chunk_words, 2.0, 3.0, 1.0) AS score FROM chunk_words
        WHERE chunk_words MATCH $2",
    // With the sign SQLite asks the words once, and not for each of these.
    of_documents: "
        AND +id IN (SELECT chunk.id FROM chunk JOIN document ON document.id = document WHERE TRUE",
    joined: "
        CROSS JOIN chunk ON chunk.id = best.id CROSS JOIN document ON document.id = document",
    without_vectors: "
        SELECT passage.id, title, section, text FROM chunk AS passage JOIN document ON document.id = document
        WHERE NOT EXISTS (SELECT 1 FROM embedding WHERE chunk = passage.id AND model = $2)
        ORDER BY passage.id LIMIT $3",
    forget_vectors: "DELETE FROM embedding WHERE model = $2",
    of_passages: "
        AND chunk IN (SELECT passage.id FROM chunk AS passage JOIN document ON document.id = document WHERE TRUE",
    keep_vector: "
        INSERT OR REPLACE INTO embedding (chunk, model, dimensions, vector)
        SELECT id, $2, $5, $4 FROM chunk WHERE id = $3",
    claim: "
        INSERT INTO claim (work, holder, until) VALUES ($2, $3, unixepoch() + $4)
        ON CONFLICT (work) DO UPDATE SET holder = excluded.holder, until = excluded.until
        WHERE claim.holder = excluded.holder OR claim.until < unixepoch() RETURNING 1",
    release: "DELETE FROM claim WHERE work = $2 AND holder = $3",
    unextracted: "
        FROM chunk AS passage JOIN document ON document.id = document
        WHERE NOT EXISTS (SELECT 1 FROM extraction WHERE chunk = passage.id)",
    mark_extracted: "
        INSERT OR REPLACE INTO extraction (chunk, model) SELECT id, $2 FROM chunk WHERE id = $3 RETURNING chunk",
    // A model that says more of a name than that it is one is believed.
    add_names: [
        "INSERT INTO entity (key, name, kind)
        SELECT value ->> 'key', value ->> 'name', value ->> 'kind' FROM json_each($3) WHERE TRUE
        ON CONFLICT (key) DO UPDATE SET kind = excluded.kind WHERE entity.kind = 'name'",
        "INSERT INTO mention (entity, chunk)
        SELECT entity.id, $2 FROM json_each($3) CROSS JOIN entity ON entity.key = value ->> 'key' WHERE TRUE
        ON CONFLICT DO NOTHING",
    ],
    add_relations: "
        INSERT INTO relation (subject, relation, object, chunk)
        SELECT subject.id, value ->> 'relation', object.id, $2
        FROM json_each($3)
        CROSS JOIN entity AS subject ON subject.key = value ->> 'subject'
        CROSS JOIN entity AS object ON object.key = value ->> 'object'
        WHERE TRUE
        ON CONFLICT DO NOTHING",
    entity: "SELECT id, name, kind FROM entity WHERE key = $2",
    similar_names: "
        SELECT name FROM entity WHERE instr(key, $2) > 0
        OR EXISTS (SELECT 1 FROM json_each($3) WHERE length(value) > 3 AND instr(entity.key, value) > 0)
        ORDER BY instr(key, $2) = 0, (SELECT count(*) FROM mention WHERE entity = id) DESC, name LIMIT 5",
    stated: "
        SELECT subject, relation, object, count(*) AS passages, min(chunk) AS chunk, 0.0 AS score FROM relation
        WHERE (subject IN (SELECT value FROM json_each($2)) OR object IN (SELECT value FROM json_each($2)))
        AND ($3 IS NULL OR relation = $3)
        GROUP BY subject, relation, object ORDER BY passages DESC, chunk, subject, object LIMIT $4",
    // Those that are mentioned everywhere come last.
    mentioned: "
        SELECT near.entity AS subject, $3 AS relation, other.entity AS object, count(*) AS passages,
            min(near.chunk) AS chunk,
            count(*) * count(*) * 1.0 / (SELECT count(*) FROM mention WHERE entity = other.entity) AS score
        FROM (SELECT entity, chunk FROM mention WHERE entity IN (SELECT value FROM json_each($2)) LIMIT 2000) AS near
        CROSS JOIN mention AS other ON other.chunk = near.chunk AND other.entity <> near.entity
        GROUP BY subject, object ORDER BY score DESC, chunk, object LIMIT $4",
    edges_joined: "
        JOIN chunk ON chunk.id = best.chunk JOIN document ON document.id = document
        JOIN entity AS subjects ON subjects.id = subject JOIN entity AS objects ON objects.id = object",
};

pub(super) const NEAREST: &str = "
    FROM (SELECT chunk AS id, 1 - vec_distance_cosine(vector, $2) AS score FROM embedding
    WHERE model = $3 AND dimensions = $4";
