//! The graph of names that a model extracted from documents.

use std::collections::BTreeSet;

use crate::place::{Place, add};
use registry_core::{ErrorKind, ToolContext, ToolError};
use toolrack_documents::{
    DocumentFilter, Documents, Extracted, ExtractedName, ExtractedRelation, Graph, GraphPath, GraphQuery,
    GraphStep,
};

const TEXT: &str = "# Rack\n\nToolrack uses SQLite. SQLite is a database engine. Toolrack is written in Rust.\n\n\
    ## Servers\n\nWhen there are several, Toolrack needs PostgreSQL, and PostgreSQL supports Notify Channels.\n\n\
    ## Elsewhere\n\nThe ToolContext is described in a guide.\n";

const SAID: &[[&str; 3]] = &[
    ["Toolrack", "uses", "SQLite"],
    ["SQLite", "is_a", "database engine"],
    ["Toolrack", "written_in", "Rust"],
    ["Toolrack", "depends_on", "PostgreSQL"],
    ["PostgreSQL", "supports", "Notify Channels"],
    ["ToolContext", "described_in", "guide"],
    ["Rust", "based_on", "Standard ML"],
];

/// Goes through the passages as a model does that says these relations, and names what is in them, wherever a passage has the names.
async fn extract(documents: &Documents, said: &[[&str; 3]]) {
    loop {
        let unread = documents.unextracted(500, &DocumentFilter::default()).await.unwrap();
        if unread.is_empty() {
            return;
        }
        let passages = unread.into_iter().map(|passage| {
            let has = |name: &str| {
                passage.text.match_indices(name).any(|(at, _)| {
                    !passage.text[at + name.len()..].starts_with(|c: char| c.is_alphanumeric())
                })
            };
            let names: BTreeSet<&str> = said
                .iter()
                .flat_map(|[subject, _, object]| [*subject, *object])
                .filter(|name| has(name))
                .collect();
            let relations = said.iter().filter(|[subject, _, object]| has(subject) && has(object));
            let relations = relations.map(|[subject, relation, object]| ExtractedRelation {
                subject: (*subject).into(),
                relation: (*relation).into(),
                object: (*object).into(),
            });
            let names =
                names.into_iter().map(|name| ExtractedName { name: name.into(), kind: "name".into() });
            (passage.id, Extracted { relations: relations.collect(), names: names.collect() })
        });
        documents.keep_extracted("a model", passages.collect()).await.unwrap();
    }
}

async fn documents(place: &Place) -> Documents {
    let documents = place.open();
    add(&documents, "rack.md", TEXT).await;
    extract(&documents, SAID).await;
    documents
}

#[tokio::test]
async fn p6_without_an_extraction_the_graph_is_off_and_says_so() {
    for place in Place::all("p6_without_an_extraction_the_graph_is_off_and_says_so") {
        let (documents, context) = (place.open(), ToolContext::default());
        let why_not = || documents.graph_for_request(&context).unwrap_err();
        assert_eq!(why_not(), "there are none yet; add some with `toolrack documents add PATH…`");
        add(&documents, "rack.md", TEXT).await;
        assert_eq!(
            why_not(),
            "no model has extracted names from the documents yet; run `toolrack documents extract`"
        );
        assert!(graph(&documents, "Toolrack", 1, None).await.is_err(), "nothing is guessed");
        extract(&documents, SAID).await;
        let graph = documents.graph_for_request(&context).unwrap();
        let query = GraphQuery { entity: "Toolrack".into(), depth: 1, relation: None, limit: 5 };
        assert_eq!(graph.search(&query).await.unwrap().entity, "Toolrack");
        documents.remove("rack.md").await.unwrap();
        assert!(documents.graph_for_request(&context).is_err());
    }
}

async fn graph(
    documents: &Documents,
    entity: &str,
    depth: u8,
    relation: Option<&str>,
) -> Result<Graph, ToolError> {
    let query = GraphQuery { entity: entity.into(), depth, relation: relation.map(Into::into), limit: 40 };
    documents.graph(&query).await
}

fn shown(graph: &Graph) -> Vec<String> {
    graph.relations.iter().map(|it| format!("{} {} {}", it.subject, it.relation, it.object)).collect()
}

#[tokio::test]
async fn p6_neighbours_come_with_the_passages_that_support_them() {
    for place in Place::all("p6_neighbours_come_with_the_passages_that_support_them") {
        let documents = documents(&place).await;
        let graph = graph(&documents, "toolrack", 1, None).await.unwrap();
        assert_eq!((graph.entity.as_str(), graph.kind.as_str()), ("Toolrack", "name"));
        let found = shown(&graph);
        for relation in [
            "Toolrack uses SQLite",
            "Toolrack written_in Rust",
            "Toolrack depends_on PostgreSQL",
            "Toolrack mentioned_with Notify Channels",
        ] {
            assert!(found.iter().any(|found| found == relation), "{relation}: {found:?}");
        }
        assert!(!found.iter().any(|found| found.contains("ToolContext")), "{found:?}");
        // Of SQLite more is said.
        let mentions = self::graph(&documents, "toolrack", 1, Some("mentioned_with")).await.unwrap();
        assert!(!found.contains(&"Toolrack mentioned_with SQLite".to_owned()), "{found:?}");
        assert!(shown(&mentions).contains(&"Toolrack mentioned_with SQLite".to_owned()));
        let needs = graph.relations.iter().find(|it| it.relation == "depends_on").unwrap();
        assert_eq!(
            (needs.source.as_str(), needs.section.as_str(), needs.place.as_str(), needs.passages),
            ("rack.md", "Rack > Servers", "line 7", 1)
        );
        assert!(needs.text.contains("Toolrack needs PostgreSQL"), "{needs:?}");
        assert!(graph.paths.is_empty());
    }
}

#[tokio::test]
async fn p6_what_is_further_away_comes_with_its_path() {
    for place in Place::all("p6_what_is_further_away_comes_with_its_path") {
        let documents = documents(&place).await;
        let near = graph(&documents, "Toolrack", 1, Some("uses")).await.unwrap();
        assert_eq!(shown(&near), ["Toolrack uses SQLite"]);
        let far = graph(&documents, "Toolrack", 2, None).await.unwrap();
        assert!(shown(&far).contains(&"PostgreSQL supports Notify Channels".to_owned()), "{:?}", shown(&far));

        add(&documents, "more.md", "# More\n\nAs said, Rust is derived from Standard ML.\n").await;
        extract(&documents, SAID).await;
        let far = graph(&documents, "Toolrack", 2, None).await.unwrap();
        let path = far.paths.iter().find(|path| path.name == "Standard ML").unwrap();
        assert_eq!(
            steps(path),
            ["Toolrack written_in Rust, rack.md line 3", "Rust based_on Standard ML, more.md line 3"]
        );
        assert_eq!((path.steps[0].section.as_str(), path.steps[1].section.as_str()), ("Rack", "More"));
        let stated = graph(&documents, "Standard ML", 3, Some("based_on")).await.unwrap();
        assert_eq!(shown(&stated), ["Rust based_on Standard ML"]);
        let beside = graph(&documents, "Rust", 1, Some("mentioned_with")).await.unwrap();
        assert!(
            beside.relations.iter().all(|it| it.relation == "mentioned_with") && beside.relations.len() > 1
        );
    }
}

fn steps(path: &GraphPath) -> Vec<String> {
    let step =
        |it: &GraphStep| format!("{} {} {}, {} {}", it.subject, it.relation, it.object, it.source, it.place);
    path.steps.iter().map(step).collect()
}

/// Paths of more than two steps, also against the direction in which a relation is said, each step in a document of its own.
#[tokio::test]
async fn p6_each_step_of_a_path_has_its_passage_and_the_nearest_come_first() {
    for place in Place::all("p6_each_step_of_a_path_has_its_passage_and_the_nearest_come_first") {
        let documents = place.open();
        for (path, text) in [
            ("a.md", "# A\n\nFirst Node uses Second Node."),
            ("b.md", "# B\n\nThird Node uses Second Node."),
            ("c.md", "# C\n\nThird Node uses Fourth Node."),
            ("d.md", "# D\n\nFourth Node uses First Node."),
            ("e.md", "# E\n\nFourth Node uses Fifth Node. Fifth Node uses Sixth Node."),
        ] {
            add(&documents, path, text).await;
        }
        let uses = |subject, object| [subject, "uses", object];
        let said = [
            uses("First Node", "Second Node"),
            uses("Third Node", "Second Node"),
            uses("Third Node", "Fourth Node"),
            uses("Fourth Node", "First Node"),
            uses("Fourth Node", "Fifth Node"),
            uses("Fifth Node", "Sixth Node"),
        ];
        extract(&documents, &said).await;
        let found = graph(&documents, "First Node", 3, Some("uses")).await.unwrap();
        let names: Vec<(&str, usize)> =
            found.paths.iter().map(|path| (path.name.as_str(), path.steps.len())).collect();
        assert_eq!(names.last(), Some(&("Sixth Node", 3)), "{names:?}");
        assert!(
            names.iter().all(|(name, _)| !["First Node", "Second Node", "Fourth Node"].contains(name)),
            "{names:?}"
        );
        assert_eq!(
            steps(found.paths.iter().find(|path| path.name == "Sixth Node").unwrap()),
            [
                "Fourth Node uses First Node, d.md line 3",
                "Fourth Node uses Fifth Node, e.md line 3",
                "Fifth Node uses Sixth Node, e.md line 3"
            ]
        );
        let third = found.paths.iter().find(|path| path.name == "Third Node").unwrap();
        assert_eq!(third.steps.len(), 2, "the shortest way: {third:?}");
        // Each step is one of the relations, which have the text.
        for step in found.paths.iter().flat_map(|path| &path.steps) {
            assert!(found.relations.iter().any(|relation| GraphStep::from(relation) == *step), "{step:?}");
        }
    }
}

/// A name with more neighbours than are given must not hide what is behind them.
#[tokio::test]
async fn p6_what_is_near_leaves_room_for_what_is_further_away() {
    for place in Place::all("p6_what_is_near_leaves_room_for_what_is_further_away") {
        let documents = documents(&place).await;
        for name in 0..60 {
            let text = format!("# N\n\nToolrack uses Near{name}X. Near{name}X uses Far{name}X.\n");
            add(&documents, &format!("{name}.md"), &text).await;
        }
        let names: Vec<[String; 2]> =
            (0..60).map(|name| [format!("Near{name}X"), format!("Far{name}X")]).collect();
        let said = names.iter().flat_map(|[near, far]| [["Toolrack", "uses", near], [near, "uses", far]]);
        extract(&documents, &said.collect::<Vec<_>>()).await;
        let found = graph(&documents, "Toolrack", 2, None).await.unwrap();
        assert_eq!(found.relations.len(), 40);
        assert!(shown(&found).iter().any(|it| it.contains(" uses Far")), "{:?}", shown(&found));
        let is_near =
            |it: &toolrack_documents::GraphRelation| it.subject == "Toolrack" || it.object == "Toolrack";
        let first_far = found.relations.iter().position(|it| !is_near(it)).unwrap();
        assert!(found.relations.iter().skip(first_far).all(|it| !is_near(it)), "{:?}", shown(&found));
        assert!(!found.paths.is_empty() && found.paths.len() <= 12, "{}", found.paths.len());
    }
}

#[tokio::test]
async fn p6_a_relation_that_is_not_said_is_answered_with_those_that_are() {
    for place in Place::all("p6_a_relation_that_is_not_said_is_answered_with_those_that_are") {
        let documents = documents(&place).await;
        let error = graph(&documents, "toolrack", 2, Some("eats")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArguments);
        assert_eq!(
            error.feedback(),
            "the documents say no `eats` of `Toolrack`; they say depends_on, uses, written_in"
        );
        let error = graph(&documents, "guide", 1, Some("uses")).await.unwrap_err();
        assert!(error.feedback().ends_with("they say described_in"), "{error}");
        // An empty one is none.
        assert!(!graph(&documents, "Toolrack", 1, Some("")).await.unwrap().relations.is_empty());
    }
}

#[tokio::test]
async fn p6_the_text_of_a_relation_has_both_names_however_far_apart() {
    for place in Place::all("p6_the_text_of_a_relation_has_both_names_however_far_apart") {
        let documents = place.open();
        let padding = "and so on it goes with ß and é ".repeat(12);
        let text = format!(
            "# T\n\nWe met Ada Lovelace, {padding}then came Grace Hopper. The Bank of England met; the BANK OF ENGLAND uses Ada Lovelace.\n"
        );
        add(&documents, "t.md", &text).await;
        let said = [["Grace Hopper", "met", "Ada Lovelace"], ["Bank of England", "uses", "Ada Lovelace"]];
        extract(&documents, &said).await;
        let found = graph(&documents, "grace hopper", 1, None).await.unwrap();
        let ada = found.relations.iter().find(|it| it.object == "Ada Lovelace").unwrap();
        assert!(ada.text.contains("Grace Hopper") && ada.text.contains("Ada Lovelace"), "{}", ada.text);
        assert!(ada.text.len() < 400, "{}", ada.text);
    }
}

#[tokio::test]
async fn p6_an_unknown_name_is_answered_with_those_that_are_near() {
    for place in Place::all("p6_an_unknown_name_is_answered_with_those_that_are_near") {
        let documents = documents(&place).await;
        let error = graph(&documents, "Postgre", 1, None).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.feedback()),
            (ErrorKind::InvalidArguments, "the documents do not name `Postgre`; they name PostgreSQL")
        );
        let error = graph(&documents, "notify server", 1, None).await.unwrap_err();
        assert!(error.feedback().contains("they name Notify Channels"), "{error}");
        for name in ["zebra", "", "%", "_", "' OR 1 --"] {
            let error = graph(&documents, name, 1, None).await.unwrap_err();
            assert!(error.feedback().contains("do not name"), "{name}: {error}");
        }
        for (name, entity) in
            [(" `toolcontext` ", "ToolContext"), ("GUIDE", "guide"), ("notify  channels", "Notify Channels")]
        {
            assert_eq!(graph(&documents, name, 1, None).await.unwrap().entity, entity);
        }
    }
}

#[tokio::test]
async fn p6_what_was_removed_is_in_no_graph() {
    for place in Place::all("p6_what_was_removed_is_in_no_graph") {
        let documents = documents(&place).await;
        add(&documents, "other.md", "# Other\n\nWith SQLite there is no server.\n").await;
        extract(&documents, SAID).await;
        documents.remove("rack.md").await.unwrap();
        assert!(graph(&documents, "Toolrack", 1, None).await.is_err());
        assert_eq!(shown(&graph(&documents, "SQLite", 3, None).await.unwrap()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn p6_a_graph_has_bounds() {
    for place in Place::all("p6_a_graph_has_bounds") {
        let documents = documents(&place).await;
        for document in 0..30 {
            let names: String =
                (0..40).map(|name| format!("So Alpha Beta uses Name{name}{document}A. ")).collect();
            add(&documents, &format!("{document}.md"), &names).await;
        }
        let names: Vec<String> =
            (0..30).flat_map(|at| (0..40).map(move |name| format!("Name{name}{at}A"))).collect();
        let said: Vec<[&str; 3]> = names.iter().map(|name| ["Alpha Beta", "uses", name]).collect();
        extract(&documents, &said).await;
        let query = GraphQuery { entity: "Alpha Beta".into(), depth: 3, relation: None, limit: 25 };
        assert_eq!(documents.graph(&query).await.unwrap().relations.len(), 25);
    }
}
