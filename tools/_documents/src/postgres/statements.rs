//! The statements for a server. $1 is the tenant.

use crate::database::Sql;

pub(super) const SQL: Sql = Sql {
    has: "SELECT EXISTS (SELECT 1 FROM document WHERE tenant = $1 AND path = $2 AND hash = $3)",
    known: "SELECT id, hash FROM document WHERE tenant = $1 AND path = $2",
    remove_known: "DELETE FROM document WHERE tenant = $1 AND id = $2",
    remove: "
        DELETE FROM document WHERE tenant = $1 AND (path = $2 OR starts_with(path, $3)) RETURNING path",
    remove_unmentioned: "
        DELETE FROM document_entity AS name WHERE tenant = $1
        AND NOT EXISTS (SELECT 1 FROM document_mention WHERE entity = name.id)",
    add: "
        INSERT INTO document (tenant, path, title, kind, bytes, passages, language, modified, added, hash, metadata, kept)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id",
    add_passages: &["
        WITH given AS (
            SELECT * FROM ROWS FROM (json_to_recordset($3::json) AS (
                section text, first bigint, last bigint, text text, section_words text, text_words text
            )) WITH ORDINALITY AS row (section, first, last, text, section_words, text_words, number)
        ),
        kept AS (
            INSERT INTO document_chunk (document, ordinal, section, first, last, text)
            SELECT $2, number - 1, section, first, last, text FROM given RETURNING id, ordinal
        )
        INSERT INTO document_words (chunk, tenant, words)
        SELECT id, $1,
            to_tsvector('toolrack_words', text_words)
            || setweight(to_tsvector('toolrack_words', section_words), 'B')
            || setweight(to_tsvector('toolrack_words', $4), 'A')
        FROM given JOIN kept ON ordinal = number - 1"],
    list: "SELECT * FROM document WHERE tenant = $1",
    listed: "
        SELECT path, title, kind, bytes, passages, language, modified, added, hash, '{}' AS metadata
        FROM document WHERE tenant = $1",
    count: "SELECT count(*) FROM document WHERE tenant = $1",
    kept: "
        SELECT count(*), (coalesce(sum(kept), 0) + 4 * coalesce(sum(passages), 0) * coalesce(
            (SELECT dimensions FROM document_embedding WHERE tenant = $1 ORDER BY chunk DESC LIMIT 1), 0
        ))::bigint
        FROM document WHERE tenant = $1 AND starts_with(path, $2) AND path <> $3",
    // What a word weighs in the text, in the section and in the title. `ts_rank_cd` finds a third less of what is asked for: it wants
    // the words of a question near to each other.
    matching: "
        FROM (SELECT chunk AS id, ts_rank('{0.6, 0, 1, 0.6}', words, asked) AS score
        FROM document_words AS hit, to_tsquery('toolrack_words', $2) AS asked
        WHERE words @@ asked AND tenant = $1",
    of_documents: "
        AND hit.chunk IN (SELECT passage.id FROM document_chunk AS passage
        JOIN document ON document.id = document WHERE document.tenant = $1",
    joined: "
        JOIN document_chunk ON document_chunk.id = best.id JOIN document ON document.id = document",
    without_vectors: "
        SELECT passage.id, title, section, text
        FROM document_chunk AS passage JOIN document ON document.id = document
        WHERE NOT EXISTS (SELECT 1 FROM document_embedding WHERE chunk = passage.id AND model = $2)
        AND document.tenant = $1 ORDER BY passage.id LIMIT $3",
    forget_vectors: "DELETE FROM document_embedding WHERE tenant = $1 AND model = $2",
    of_passages: "
        AND chunk IN (SELECT passage.id FROM document_chunk AS passage
        JOIN document ON document.id = document WHERE document.tenant = $1",
    keep_vector: "
        INSERT INTO document_embedding (chunk, tenant, model, dimensions, vector)
        SELECT passage.id, $1, $2, $5, $4 FROM document_chunk AS passage
        JOIN document ON document.id = document AND tenant = $1 WHERE passage.id = $3
        ON CONFLICT (chunk) DO UPDATE SET (model, dimensions, vector)
            = (excluded.model, excluded.dimensions, excluded.vector)",
    claim: "
        INSERT INTO document_claim (tenant, work, holder, until)
        VALUES ($1, $2, $3, now() + $4::bigint * interval '1 second')
        ON CONFLICT (tenant, work) DO UPDATE SET holder = excluded.holder, until = excluded.until
        WHERE document_claim.holder = excluded.holder OR document_claim.until < now() RETURNING 1::bigint",
    release: "DELETE FROM document_claim WHERE tenant = $1 AND work = $2 AND holder = $3",
    unextracted: "
        FROM document_chunk AS passage JOIN document ON document.id = document
        WHERE NOT EXISTS (SELECT 1 FROM document_extraction WHERE chunk = passage.id)
        AND document.tenant = $1",
    mark_extracted: "
        INSERT INTO document_extraction (chunk, model)
        SELECT passage.id, $2 FROM document_chunk AS passage JOIN document ON document.id = document
        WHERE passage.id = $3 AND tenant = $1
        ON CONFLICT (chunk) DO UPDATE SET model = excluded.model RETURNING chunk",
    // A model that says more of a name than that it is one is believed. As two names may be one when they are looked up, the first of
    // them counts; a longer one does not fit an index, and nobody asks for it.
    add_names: [
        "INSERT INTO document_entity (tenant, key, name, kind)
        SELECT DISTINCT ON (key) $1, key, name, kind
        FROM json_to_recordset($3::json) AS (key text, name text, kind text)
        WHERE $2::bigint > 0 AND length(key) <= 500
        ON CONFLICT (tenant, key) DO UPDATE SET kind = excluded.kind WHERE document_entity.kind = 'name'",
        "INSERT INTO document_mention (entity, chunk)
        SELECT entity.id, $2 FROM json_to_recordset($3::json) AS row (key text)
        JOIN document_entity AS entity ON entity.tenant = $1 AND entity.key = row.key
        ON CONFLICT DO NOTHING",
    ],
    add_relations: "
        INSERT INTO document_relation (subject, relation, object, chunk)
        SELECT subject.id, relation, object.id, $2
        FROM json_to_recordset($3::json) AS row (subject text, relation text, object text)
        JOIN document_entity AS subject ON subject.tenant = $1 AND subject.key = row.subject
        JOIN document_entity AS object ON object.tenant = $1 AND object.key = row.object
        ON CONFLICT DO NOTHING",
    entity: "SELECT id, name, kind FROM document_entity WHERE tenant = $1 AND key = $2",
    similar_names: "
        SELECT name FROM document_entity AS entity WHERE tenant = $1 AND (
            strpos(key, $2) > 0
            OR EXISTS (
                SELECT 1 FROM json_array_elements_text($3::json) AS word
                WHERE length(word) > 3 AND strpos(key, word) > 0
            )
        )
        ORDER BY strpos(key, $2) = 0, (SELECT count(*) FROM document_mention WHERE entity = id) DESC, name LIMIT 5",
    stated: "
        SELECT subject, relation, object, count(*) AS passages, min(chunk) AS chunk, 0.0 AS score
        FROM document_relation
        WHERE (subject = ANY(ARRAY(SELECT json_array_elements_text($2::json)::bigint))
            OR object = ANY(ARRAY(SELECT json_array_elements_text($2::json)::bigint)))
        AND ($3::text IS NULL OR relation = $3)
        GROUP BY subject, relation, object ORDER BY passages DESC, chunk, subject, object LIMIT $4",
    // Those that are mentioned everywhere come last.
    mentioned: "
        SELECT near.entity AS subject, $3::text AS relation, other.entity AS object, count(*) AS passages,
            min(near.chunk) AS chunk,
            count(*) * count(*) * 1.0 / (SELECT count(*) FROM document_mention WHERE entity = other.entity) AS score
        FROM (
            SELECT entity, chunk FROM document_mention
            WHERE entity = ANY(ARRAY(SELECT json_array_elements_text($2::json)::bigint)) LIMIT 2000
        ) AS near
        JOIN document_mention AS other ON other.chunk = near.chunk AND other.entity <> near.entity
        GROUP BY near.entity, other.entity ORDER BY score DESC, chunk, object LIMIT $4",
    edges_joined: "
        JOIN document_chunk ON document_chunk.id = best.chunk
        JOIN document ON document.id = document AND document.tenant = $1
        JOIN document_entity AS subjects ON subjects.id = subject
        JOIN document_entity AS objects ON objects.id = object",
};

// All vectors have length 1, so that the product is the cosine.
pub(super) const NEAREST_BY_PGVECTOR: &str = "
    FROM (SELECT chunk AS id, -(vector::vector <#> $2::real[]::vector) AS score FROM document_embedding AS hit
    WHERE tenant = $1 AND model = $3 AND dimensions = $4";
pub(super) const NEAREST: &str = "
    FROM (SELECT chunk AS id,
        (SELECT sum(one * other) FROM unnest(vector, $2::real[]) AS pair (one, other)) AS score
    FROM document_embedding AS hit WHERE tenant = $1 AND model = $3 AND dimensions = $4";
