#![cfg(feature = "documents")]

use registry_core::prelude::*;
use toolrack_documents::{DocumentGraph, Graph, GraphQuery};

/// How many relations are given: with their passages about 5000 tokens.
const MAX_RELATIONS: usize = 30;

/// Look up how a name (a person, product, place, identifier in code or concept) is related to others in the user's documents. Use it for questions about relations between names. Returns the relations and the passages that state them.
///
/// On once a model has extracted names from the user's documents, as `toolrack documents extract` has it do.
#[tool(
    title = "Search the graph of names",
    version = "1.1.0",
    tags = ["documents", "graph"],
    permission = Permission::User,
    reads = private | untrusted,
    sends = nothing,
    timeout = secs(15)
)]
async fn graph_search(
    ctx: &ToolContext,
    graph: Resource<DocumentGraph>,
    /// The name, as the documents write it.
    #[arg(length = 1..=200)]
    entity: &str,
    /// Maximum distance of other names, in relations.
    #[arg(default = 1, range = 1..=3)]
    depth: u8,
    /// Only one kind of relation, such as is_a, uses, depends_on, part_of, has, or mentioned_with.
    #[arg(length = 1..=40)]
    relation: Option<String>,
) -> Result<Graph, ToolError> {
    ctx.status(format!("Looking up what has to do with \"{entity}\""));
    let relation = relation.map(|relation| relation.trim().to_lowercase().replace([' ', '-'], "_"));
    let query = GraphQuery { entity: entity.to_owned(), depth, relation, limit: MAX_RELATIONS };
    graph.search(&query).await
}

#[cfg(test)]
mod tests {
    use toolrack_documents::{DocumentKind, read};

    use super::*;
    use crate::test_documents::{documents, extract};

    async fn search(entity: &str, depth: u8, relation: Option<&str>) -> Result<Graph, ToolError> {
        let folder = tempfile::tempdir()?;
        let documents = documents(folder.path()).await;
        let text = b"It is said that Japan is part of Asia Major.";
        documents.add(read::document("asia.txt", DocumentKind::Text, text, None).unwrap()).await?;
        let said = [
            ["Kyoto Tea House", "uses", "Uji Leaves"],
            ["Uji Leaves", "part_of", "Japan"],
            ["Japan", "part_of", "Asia Major"],
        ];
        extract(&documents, &said).await;
        let context = ToolContext::default();
        let graph = Resource::new(documents.graph_for_request(&context).unwrap());
        graph_search(&context, graph, entity, depth, relation.map(str::to_owned)).await
    }

    fn shown(graph: &Graph) -> Vec<String> {
        graph.relations.iter().map(|it| format!("{} {} {}", it.subject, it.relation, it.object)).collect()
    }

    #[tokio::test]
    async fn p6_names_are_looked_up_with_what_supports_them() {
        let graph = search("kyoto tea house", 1, Some("uses")).await.unwrap();
        assert_eq!(shown(&graph), ["Kyoto Tea House uses Uji Leaves"]);
        assert_eq!(
            (graph.relations[0].source.as_str(), graph.relations[0].place.as_str()),
            ("drinks/tea.md", "line 5")
        );
        let graph = search("Kyoto Tea House", 2, None).await.unwrap();
        assert!(shown(&graph).contains(&"Uji Leaves part_of Japan".to_owned()), "{graph:?}");
        assert_eq!(
            shown(&search("Uji Leaves", 1, Some("Part of")).await.unwrap()),
            ["Uji Leaves part_of Japan"]
        );
    }

    #[tokio::test]
    async fn p6_each_step_of_a_path_says_where_it_is_written() {
        let error = search("Kyoto Tea House", 2, Some("part of")).await.unwrap_err();
        assert!(
            error.feedback().contains("say no `part_of`") && error.feedback().contains("uses"),
            "{error}"
        );
        let graph = search("Kyoto Tea House", 2, None).await.unwrap();
        let path = graph.paths.iter().find(|path| path.name == "Asia Major").unwrap();
        let steps = path.steps.iter();
        let steps = steps
            .map(|it| format!("{} {} {}, {} {}", it.subject, it.relation, it.object, it.source, it.place));
        assert_eq!(
            steps.collect::<Vec<_>>(),
            [
                "Kyoto Tea House mentioned_with Japan, drinks/tea.md line 9",
                "Japan part_of Asia Major, asia.txt line 1"
            ]
        );
    }

    #[tokio::test]
    async fn p6_the_error_for_an_unknown_name_lists_the_known_ones() {
        let error = search("Tea House of Kyoto", 1, None).await.unwrap_err();
        assert!(error.feedback().contains("they name Kyoto Tea House"), "{error}");
    }
}
