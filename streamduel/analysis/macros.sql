-- Functions that read the text of a field. NULL: the text is not what the field allows.

-- Milliseconds since 1970, from a number in some unit (factor: milliseconds per unit), ISO 8601, or
-- what Snowflake, OpenSearch Dashboards, web servers and JavaScript write.
CREATE MACRO milliseconds(t, factor) AS coalesce(
    try_cast(try_cast(t AS DOUBLE) * factor AS BIGINT),
    epoch_ms(try_cast(t AS TIMESTAMPTZ)),
    epoch_ms(try_cast(regexp_replace(
        replace(t, ',', '.'), '\s*(Z|[+-]\d\d:?\d\d)?(\[.*\])?$', '\1') AS TIMESTAMPTZ)),
    epoch_ms(try_strptime(
        t, ['%d/%b/%Y:%H:%M:%S %z', '%a, %d %b %Y %H:%M:%S %z'])::TIMESTAMPTZ),
    epoch_ms(try_strptime(t, [
        '%b %-d, %Y @ %H:%M:%S.%g', '%b %-d, %Y %H:%M:%S', '%Y%m%dT%H%M%SZ',
        '%a, %d %b %Y %H:%M:%S GMT'])::TIMESTAMPTZ)
);

-- What programs write for nothing: Hive \N, Python None, R NA, JavaScript undefined.
CREATE MACRO is_nothing(t) AS CASE
    WHEN t IS NULL THEN true
    WHEN strlen(t) > 9 THEN false -- most ids and arrays, and fast
    ELSE lower(trim(t)) IN (
        '', 'null', '(null)', '\n', 'none', 'nan', 'na', '<na>', 'n/a', 'undefined'
    )
END;

-- What programs write for a list without clicks.
CREATE MACRO no_click(t) AS is_nothing(t) OR trim(t) IN ('-1', '-1.0');

-- A whole number; text such as 3.0 is one, 3.5 is not.
CREATE MACRO whole(t) AS CASE
    WHEN regexp_full_match(t, '\s*-?\d{1,16}(\.0+)?\s*') THEN try_cast(try_cast(t AS DOUBLE) AS BIGINT)
END;

-- A number without the point that pandas adds to a column with missing values: 2.0 is 2.
CREATE MACRO number_name(t) AS regexp_replace(t, '^(-?\d+)\.0+$', '\1');

-- True, false, or NULL for neither of them.
CREATE MACRO flag(t) AS CASE
    WHEN lower(t) IN ('true', 't', 'yes', 'y', '1', '1.0') THEN true
    WHEN lower(t) IN ('false', 'f', 'no', 'n', '0', '0.0') THEN false
END;

-- Whether a text is true, false or nothing.
CREATE MACRO is_flag(t) AS flag(t) IS NOT NULL
    OR is_nothing(t) OR lower(trim(t)) IN ('tie', 'draw', '0.5');

CREATE MACRO python_list(t) AS CASE
    WHEN json_valid(t) THEN t ELSE replace(replace(t, '''', '"'), 'None', 'null')
END;

-- The entries of a JSON array, of a Python list, of 'a,b,b', of 'a b b', of 'abb' or of 'LRR'.
CREATE MACRO entries(t) AS CASE
    WHEN starts_with(t, '[') AND json_valid(python_list(t)) THEN from_json(python_list(t), '["VARCHAR"]')
    WHEN regexp_full_match(t, '[aAbB_-]*|[lLrR_-]*') THEN string_split(t, '')
    WHEN regexp_matches(t, '[,;|]') THEN string_split_regex(trim(t, '[](){} '), '\s*[,;|]\s*')
    ELSE string_split_regex(trim(t, '[](){} '), '\s+')
END;

-- A number of wins or clicks; true is one, and a list is as many as it has entries.
CREATE MACRO count_of(t) AS CASE
    WHEN lower(t) IN ('true', 'false') THEN (lower(t) = 'true')::BIGINT
    WHEN starts_with(t, '[') THEN len(entries(t))
    ELSE whole(t)
END;

-- Names of sides, as far as they cannot mean anything else.
CREATE MACRO plain(t) AS regexp_replace(lower(t), '[^a-z0-9]', '', 'g');

-- What names a side in `left_won`, 'A wins' and 'left is slightly better'.
CREATE MACRO side_word(t) AS regexp_replace(
    plain(t), '(is|was|much|slightly|somewhat|clearly|strongly|better|preferred|won|wins|win)+$', ''
);

CREATE MACRO is_side_a(t) AS side_word(t) IN (
    'a', 'l', 'left', 'arma', 'rankera', 'modela', 'systema', 'sidea', 'teama', 'varianta',
    'leftranker', 'arm1', 'ranker1', 'model1', 'first', 'firstranker', 'control', 'baseline'
);

CREATE MACRO is_side_b(t) AS side_word(t) IN (
    'b', 'r', 'right', 'armb', 'rankerb', 'modelb', 'systemb', 'sideb', 'teamb', 'variantb',
    'rightranker', 'arm2', 'ranker2', 'model2', 'second', 'secondranker', 'treatment',
    'candidate', 'challenger'
);

-- The side of a ranker by its name in another case; NULL if the name is that of the other side.
CREATE MACRO side_by_name(x, a, b) AS CASE lower(x)
    WHEN lower(a) THEN CASE WHEN NOT is_side_b(x) THEN 'a' END
    WHEN lower(b) THEN CASE WHEN NOT is_side_a(x) THEN 'b' END
END;

-- The side of one rank. Of streamduel's own records it is 'a', 'b' or null; others may name arms.
CREATE MACRO side_of(x, a, b, own) AS CASE
    WHEN x IS NULL OR x = 'NULL' THEN '-'
    WHEN own THEN CASE WHEN x IN ('a', 'b') THEN x ELSE '?' END
    WHEN x = a THEN 'a'
    WHEN x = b THEN 'b'
    WHEN x IN ('a', 'b') AND NOT coalesce(x = lower(a) OR x = lower(b), false) THEN x -- mostly
    WHEN lower(a) <> lower(b) AND lower(x) IN (lower(a), lower(b))
        THEN coalesce(side_by_name(x, a, b), '?')
    WHEN is_side_a(x) THEN 'a'
    WHEN is_side_b(x) THEN 'b'
    WHEN is_nothing(x) OR x IN ('-', '_') THEN '-'
    ELSE '?'
END;

-- One letter for each rank: a, b or - for neither. Most logs write a and b: these letters are looked
-- at together, unless a ranker has the name of the other side.
CREATE MACRO teams_of(t, a, b, own) AS CASE
    WHEN (own OR (lower(a) <> 'b' AND lower(b) <> 'a')) AND regexp_full_match(t, '\[("[ab]",)*"[ab]"\]')
        THEN translate(t, '[]",', '')
    WHEN NOT own AND lower(a) <> 'b' AND lower(b) <> 'a' AND regexp_full_match(t, '[ab]+') THEN t
    ELSE array_to_string([side_of(x, a, b, own) for x in entries(t)], '')
END;

-- Whether a text has nothing but teams, and whether it has both and one for each document.
CREATE MACRO are_teams(t, a, b) AS
    is_nothing(t) OR NOT contains(array_to_string([side_of(x, a, b, false) for x in entries(t)], ''), '?');
CREATE MACRO has_teams(t, a, b, docs) AS
    len(entries(t)) > 2 AND regexp_matches(teams_of(t, a, b, false), 'a.*b|b.*a')
    AND coalesce(len(entries(docs)) = len(entries(t)), true);

-- The winner: a, b, or t for a tie.
CREATE MACRO winner_of(w, a, b, own) AS CASE
    WHEN own THEN CASE w WHEN 'a' THEN 'a' WHEN 'b' THEN 'b' WHEN 'tie' THEN 't' END
    WHEN w IS NULL THEN 't'
    WHEN w = a THEN 'a'
    WHEN w = b THEN 'b'
    WHEN lower(a) <> lower(b) AND lower(w) IN (lower(a), lower(b)) THEN side_by_name(w, a, b)
    WHEN is_side_a(w) THEN 'a'
    WHEN is_side_b(w) THEN 'b'
    WHEN regexp_replace(lower(w), '[ _()-]', '', 'g') IN (
        '', 't', 'tie', 'tied', 'draw', 'none', 'null', 'nan', 'neither', 'both', 'equal', 'even',
        'same', 'thesame', 'aboutthesame', 'aboutequal', 'similar', 'tiebothbad', 'bothbad',
        'bothgood', 'nodifference', 'nowinner', 'nopreference', 'undecided', 'inconclusive', 'unsure',
        'notsure', 'cannotdecide', 'cantdecide', 'either', 'na', 'n/a', '\n' -- Hive writes \N for NULL
    ) THEN 't'
END;

CREATE MACRO click_of(r, action, ts) AS {
    'rank': r::BIGINT, 'action': nullif(action::VARCHAR, 'click'), 'ts': ts::BIGINT
};

CREATE MACRO ranks_of(flags) AS [i for i in range(1, len(flags) + 1) if flags[i] = 'true'];

-- Clicks: ranks, or objects with a rank, an action and a time; or for each rank true or false.
CREATE MACRO clicks_of(t) AS CASE
    WHEN regexp_full_match(t, '\s*[\[\(\{]?[\d,;|\s]*[\]\)\}]?\s*')
        THEN [click_of(try_cast(x AS BIGINT), NULL, NULL) for x in regexp_extract_all(t, '\d+')]
    WHEN regexp_full_match(lower(t), '\s*\[(\s*(true|false)\s*,?)*\]\s*')
        THEN [click_of(x - 1, NULL, NULL) for x in ranks_of(regexp_extract_all(lower(t), 'true|false'))]
    WHEN regexp_full_match(t, '\s*\[?(\s*\d+\.0\s*,?)*\]?\s*')
        THEN [click_of(try_cast(try_cast(x AS DOUBLE) AS BIGINT), NULL, NULL)
              for x in regexp_extract_all(t, '\d+\.0')]
    WHEN starts_with(t, '[') AND json_valid(python_list(t))
        THEN [CASE WHEN json_type(x) = 'OBJECT'
                   THEN click_of(
                       whole(coalesce(x->>'$.rank', x->>'$.position', x->>'$.pos', x->>'$.index',
                                      x->>'$.ordinal', x->>'$.slot')),
                       x->>'$.action', whole(x->>'$.ts'))
                   ELSE click_of(whole(x->>'$'), NULL, NULL) END
              for x in from_json(python_list(t), '["JSON"]')]
END;

-- Clicks on documents of the list; the rank is NULL if the list does not have the document.
CREATE MACRO clicks_on(t, docs) AS [
    click_of(list_position(docs, CASE
        WHEN starts_with(x, '{') AND json_valid(x)
            THEN coalesce(x->>'$.doc', x->>'$.doc_id', x->>'$.docId', x->>'$.item_id',
                          x->>'$.itemId', x->>'$.document_id', x->>'$.product_id', x->>'$.id')
            ELSE x END) - 1, NULL, NULL)
    for x in entries(t) if x <> ''
];

-- Clicks of another program, which may name documents: always, or where they are no ranks.
CREATE MACRO clicks_in(t, are_docs, docs) AS CASE
    WHEN docs IS NULL THEN CASE WHEN NOT are_docs OR t = '[]' OR starts_with(t, '[{') THEN clicks_of(t) END
    WHEN are_docs OR clicks_of(t) IS NULL OR len([1 for c in clicks_of(t) if c.rank IS NULL]) > 0
        THEN clicks_on(t, entries(docs))
    ELSE clicks_of(t)
END;

-- Whether such clicks are numbers of ranks, which may begin with 1: neither documents nor flags.
CREATE MACRO are_ranks(t, docs) AS CASE
    WHEN regexp_matches(t, '^\s*\[\s*[tTfF]') THEN false
    WHEN docs IS NULL THEN t IS NOT NULL
    ELSE len([1 for c in clicks_of(t) if c.rank IS NULL]) = 0
END;

-- Clicks in the order of their times if each has one, else in the order of the record.
CREATE MACRO in_time(clicks) AS CASE
    WHEN len(clicks) > 1 AND len([1 for c in clicks if c.ts IS NULL]) = 0
        THEN [s.click for s in list_sort([{'ts': clicks[i].ts, 'i': i, 'click': clicks[i]}
                                          for i in range(1, len(clicks) + 1)])]
    ELSE clicks
END;

-- What a credit function needs to know: for each click the side, rank, chance of a and action.
-- Equal texts have equal credit, so that each is credited once.
CREATE MACRO pattern_of(teams, clicks, chances) AS array_to_string(
    [teams[c.rank + 1] || c.rank
     || CASE WHEN chances IS NULL THEN '' ELSE '@' || coalesce(chances[c.rank + 1]::VARCHAR, '') END
     || coalesce(':' || translate(c.action, chr(31), ''), '') for c in in_time(clicks)],
    chr(31)
);

-- The segments of a record: the fields of an object, in their order; or a text, which is of the kind
-- `segment`. Of a field that is there twice, the first value counts. Records have at most 8 segments;
-- of an object that is something else, 64 fields bound the rows.
CREATE MACRO segments_of(t) AS CASE
    WHEN NOT starts_with(t, '{') THEN [{'kind': 'segment', 'name': t, 'place': 1}]
    WHEN json_valid(t) THEN [
        {'kind': k,
         'name': json_extract_string(t, '/' || replace(replace(k, '~', '~0'), '/', '~1')),
         'place': i}
        for k, i in json_keys(t)[:64] if list_position(json_keys(t), k) = i]
END;
