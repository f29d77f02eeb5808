//! The tools of a round as the model learns of them.

use std::{borrow::Cow, sync::Arc};

use registry_core::Tool;
use serde_json::{Value, json};
use toolrack_apis::{ClientTool, Provider, ToolInput};

use super::{Offer, Round};
use crate::turn::{
    prepared::{Definition, FOR_PROMPTS},
    read_result::READ_RESULT,
};

impl Offer {
    /// The client's tools of a round.
    pub(in crate::turn) fn client_tools(&self, round: Round) -> Vec<ClientTool> {
        self.client.iter().filter(|tool| self.has_in(round, &tool.name)).cloned().collect()
    }

    /// The definitions of the server's tools in a round, separated by commas. What the conversation has found stands at the end, so that
    /// all before it stays what it was, for servers that keep what they have read.
    pub(in crate::turn) fn definitions(&self, round: Round, api: Provider) -> String {
        let mut json = String::new();
        for (definition, wire) in self.definitions_with(round, self.found.names(), api) {
            if !json.is_empty() {
                json.push(',');
            }
            definition.write(wire, &mut json);
        }
        json
    }

    /// The tools of a round for a prompt, each as `{"name", "description", "parameters"}`. What this turn's searches have found is
    /// in their results.
    pub(in crate::turn) fn functions(&self, round: Round) -> Vec<Value> {
        self.functions_with(round, self.found.names_before())
    }

    /// Likewise the tools that the model may call in a round: with what this turn's searches have found, and the tool that a shortened
    /// result names.
    pub(in crate::turn) fn callable(&self, round: Round) -> Vec<Value> {
        let mut names = self.found.names();
        if self.reading().is_some() && !names.iter().any(|name| name == READ_RESULT) {
            names.push(READ_RESULT.to_owned());
        }
        self.functions_with(round, names)
    }

    fn functions_with(&self, round: Round, found: Vec<String>) -> Vec<Value> {
        let server = self.definitions_with(round, found, FOR_PROMPTS);
        let server = server.map(|(definition, wire)| definition.function(wire));
        server.chain(self.client_functions(round)).collect()
    }

    /// Whether a client has asked that calls of one of its tools of a round are kept to the tool's schema.
    pub(in crate::turn) fn has_strict_tool(&self, round: Round) -> bool {
        let is_strict = |tool: &ClientTool| matches!(tool.input, ToolInput::Json { strict: Some(true), .. });
        self.client_tools(round).iter().any(is_strict)
    }

    /// The client's tools of a round for a prompt.
    pub(in crate::turn) fn client_functions(&self, round: Round) -> Vec<Value> {
        self.client_tools(round).iter().map(function_of).collect()
    }

    /// The definitions of the server's tools in a round, with these that have been found, and their names on the wire.
    fn definitions_with(
        &self,
        round: Round,
        found: Vec<String>,
        api: Provider,
    ) -> impl Iterator<Item = (Definition, &str)> {
        let first = self.server.iter().map(|(tool, wire)| (tool, wire.as_str()));
        let found = found.into_iter().filter_map(|name| {
            let tool = self.deferred(&name)?;
            Some((tool, self.names.wire(&name)?))
        });
        let all = first.chain(found).filter(move |(_, wire)| self.has_in(round, wire));
        all.filter_map(move |(tool, wire)| Some((self.definition(tool, api)?, wire)))
    }

    pub(super) fn definition(&self, tool: &Arc<Tool>, api: Provider) -> Option<Definition> {
        let prepared = self.prepared.of(api);
        match tool.is_search() {
            true => prepared.described(tool, self.selection.description(tool).into_owned()),
            false => prepared.definition(tool),
        }
    }
}

/// A client's tool for a prompt. One that takes free text is called with that in one argument.
pub(in crate::turn) fn function_of(tool: &ClientTool) -> Value {
    let parameters = tool.input.schema().map_or_else(|| json!({"type": "object"}), Cow::into_owned);
    json!({"name": tool.name, "description": tool.description, "parameters": parameters})
}
