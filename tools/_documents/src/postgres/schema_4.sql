-- Who works through a tenant's passages with a model at the moment, and until when that counts, so that no two servers do it at once.
CREATE TABLE document_claim (
    tenant TEXT COLLATE "C" NOT NULL,
    work TEXT NOT NULL,
    holder TEXT NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant, work)
);

-- Each letter of Thai, Lao, Burmese, Khmer and Korean is looked up by itself, as those of Chinese and Japanese are: those of passages that
-- are there already are added behind their words. Marks above and below letters are left out.
UPDATE document_words SET words = words || to_tsvector('toolrack_words', regexp_replace(
    regexp_replace(
        regexp_replace(
            given.text,
            '[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3\u17dd]',
            '', 'g'
        ),
        '[^\u0e01-\u0e5b\u0e81-\u0edf\u1000-\u109f\u1780-\u17e9\uac00-\ud7a3]+', ' ', 'g'
    ),
    '([^ ])', ' \1 ', 'g'
))
FROM (
    SELECT passage.id, concat_ws(' ', passage.text, section, title, regexp_replace(path, '^.*[/\\]', '')) AS text
    FROM document_chunk AS passage JOIN document ON document.id = document
) AS given
WHERE chunk = given.id AND given.text ~ '[\u0e01-\u0e5b\u0e81-\u0edf\u1000-\u109f\u1780-\u17e9\uac00-\ud7a3]';
