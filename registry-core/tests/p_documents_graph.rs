//! The graph of names that is drawn from documents.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod documents_kept;

use documents_kept::{Place, add};
use registry_core::{
    documents::{Documents, Graph, GraphQuery},
    result::{ErrorKind, ToolError},
};

const TEXT: &str = "# Rack\n\nToolrack uses SQLite. SQLite is a database engine. Toolrack is written in Rust.\n\n\
    ## Servers\n\nWhen there are several, Toolrack needs PostgreSQL, and PostgreSQL supports Notify Channels.\n\n\
    ## Elsewhere\n\nThe `ToolContext` is described in [the guide](guide.md#context).\n";

async fn documents(place: &Place) -> Documents {
    let documents = place.open();
    add(&documents, "rack.md", TEXT).await;
    documents
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
            "Toolrack mentioned_with Rust",
        ] {
            assert!(found.iter().any(|found| found == relation), "{relation}: {found:?}");
        }
        assert!(!found.iter().any(|found| found.contains("ToolContext")), "{found:?}");
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
        let channels = far.paths.iter().find(|path| path.name == "Notify Channels");
        // It is beside it as well, in the same passage.
        assert!(channels.is_none() || channels.unwrap().through == ["Toolrack", "PostgreSQL"]);
        assert!(shown(&far).contains(&"PostgreSQL supports Notify Channels".to_owned()), "{:?}", shown(&far));

        add(&documents, "more.md", "# More\n\nAs said, Rust is derived from Standard ML.\n").await;
        let far = graph(&documents, "Toolrack", 2, None).await.unwrap();
        let path = far.paths.iter().find(|path| path.name == "Standard ML").unwrap();
        assert_eq!(path.through, ["Toolrack", "Rust"]);
        let stated = graph(&documents, "Standard ML", 3, Some("based_on")).await.unwrap();
        assert_eq!(shown(&stated), ["Rust based_on Standard ML"]);
        let beside = graph(&documents, "Rust", 1, Some("mentioned_with")).await.unwrap();
        assert!(
            beside.relations.iter().all(|it| it.relation == "mentioned_with") && beside.relations.len() > 1
        );
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
        for (name, entity) in [(" `toolcontext` ", "ToolContext"), ("guide.md", "guide.md"), ("RACK", "Rack")]
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
        let query = GraphQuery { entity: "Alpha Beta".into(), depth: 3, relation: None, limit: 25 };
        assert_eq!(documents.graph(&query).await.unwrap().relations.len(), 25);
    }
}
