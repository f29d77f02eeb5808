//! The peers, and which of their parsers reads which dialect.

pub mod dynamo;
pub mod dynamo_v2;
pub mod smg;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{call::Called, case::Case};

/// How many characters a piece of a stream has.
pub const PIECE: usize = 4;

/// Whole or as a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// In one piece, through the function for whole texts.
    Whole,
    /// In pieces of [`PIECE`] characters.
    Pieces,
}

impl Mode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Whole, Self::Pieces];

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Pieces => "in pieces",
        }
    }
}

/// A peer; the second crate has two sorts of parsers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// `dynamo-parsers`.
    Dynamo,
    /// `dynamo-parsers-v2`, its parsers of tool calls.
    DynamoV2,
    /// `dynamo-parsers-v2`, its parsers of whole answers, thinking included.
    DynamoV2Unified,
    /// `tool-parser`.
    ToolParser,
}

/// Corpus dialect, and the names of the parsers that read it: of `dynamo-parsers`, of the tool parsers and the
/// unified parsers of `dynamo-parsers-v2`, and of `tool-parser`. Empty: it has none. Both Dynamo crates read `harmony` only
/// with a vocabulary that they fetch from the network while they run, so it is not compared.
const PARSERS: &[(&str, [&str; 4])] = &[
    ("bare_json", ["default", "", "", "json"]),
    ("beam", ["", "", "beam", ""]),
    ("cohere_command", ["", "", "", "cohere"]),
    ("deepseek_v3", ["deepseek_v3", "", "", "deepseek"]),
    ("deepseek_v31", ["deepseek_v3_1", "", "", "deepseek31"]),
    ("deepseek_v32", ["deepseek_v3_2", "", "", "deepseek32"]),
    ("deepseek_v4", ["deepseek_v4", "deepseek_v4", "deepseek_v4", "deepseek_v4"]),
    ("deepseek_v41", ["", "", "deepseek_v41", "deepseek_v41"]),
    ("gemma4", ["gemma4", "gemma4", "gemma4", "gemma4"]),
    ("glm45", ["glm47", "glm47", "glm47", "glm45_moe"]),
    ("glm47", ["glm47", "glm47", "glm47", "glm47_moe"]),
    ("hermes", ["hermes", "", "", "qwen"]),
    ("hy_v4", ["", "", "", "hy_v4"]),
    ("inkling", ["inkling", "", "", "inkling"]),
    ("jamba", ["jamba", "", "", ""]),
    ("kimi_k2", ["kimi_k2", "kimi_k2", "kimi_k2", "kimik2"]),
    ("kimi_k3", ["kimi_k3", "kimi_k3", "kimi_k3", "kimi_k3"]),
    ("llama3_json", ["llama3_json", "", "", "llama"]),
    ("llama4_pythonic", ["pythonic", "", "", "pythonic"]),
    ("minimax_m2", ["minimax_m2", "minimax_m2", "", "minimax_m2"]),
    ("minimax_m3", ["minimax_m3", "minimax_m3", "minimax_m3", "minimax_m3"]),
    ("mistral", ["mistral", "", "", "mistral"]),
    ("muse", ["", "muse_glimmer", "muse_glimmer", ""]),
    ("nemotron_deci", ["nemotron_deci", "", "", ""]),
    ("phi4_mini_json", ["phi4", "", "", ""]),
    ("pythonic", ["pythonic", "", "", "pythonic"]),
    ("qwen3_coder", ["qwen3_coder", "qwen3_coder", "qwen3", "qwen_xml"]),
    ("sarashina", ["", "", "", "sarashina"]),
    ("step3", ["", "", "", "step3"]),
];

impl Peer {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Dynamo, Self::DynamoV2, Self::DynamoV2Unified, Self::ToolParser];

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Dynamo => "dynamo-parsers",
            Self::DynamoV2 => "dynamo-parsers-v2",
            Self::DynamoV2Unified => "dynamo-parsers-v2 (unified)",
            Self::ToolParser => "tool-parser",
        }
    }

    /// Its parser for a dialect of the corpus.
    pub fn parser(self, dialect: &str) -> Option<&'static str> {
        let (_, names) = PARSERS.iter().find(|(name, _)| *name == dialect)?;
        let name = match (self, names) {
            (Self::Dynamo, [name, ..])
            | (Self::DynamoV2, [_, name, ..])
            | (Self::DynamoV2Unified, [_, _, name, _])
            | (Self::ToolParser, [.., name]) => *name,
        };
        (!name.is_empty()).then_some(name)
    }

    /// The calls it finds in a case with this parser of its own, or its error.
    ///
    /// # Errors
    /// What it says is wrong, or that it has panicked.
    pub fn read(self, parser: &str, case: &Case, mode: Mode) -> Result<Vec<Called>, String> {
        let read = || match self {
            Self::Dynamo => dynamo::read(parser, case, mode),
            Self::DynamoV2 => dynamo_v2::read(parser, case, mode),
            Self::DynamoV2Unified => dynamo_v2::read_unified(parser, case, mode),
            Self::ToolParser => smg::read(parser, case, mode),
        };
        catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("it panics".into()))
    }
}

/// Calls that come in fragments, distinguished by their number.
#[derive(Debug, Default)]
pub(crate) struct Fragments(Vec<(usize, String, String)>);

impl Fragments {
    pub(crate) fn add(&mut self, index: usize, name: Option<&str>, arguments: &str) {
        let at = self.0.iter().rposition(|(number, ..)| *number == index);
        let at = at.unwrap_or_else(|| {
            self.0.push((index, String::new(), String::new()));
            self.0.len() - 1
        });
        if let Some((_, all_name, all_arguments)) = self.0.get_mut(at) {
            all_name.push_str(name.unwrap_or_default());
            all_arguments.push_str(arguments);
        }
    }

    pub(crate) fn calls(self) -> Vec<Called> {
        self.0.into_iter().map(|(_, name, arguments)| Called::from_text(name, &arguments)).collect()
    }
}

#[cfg(test)]
mod tests {
    use dynamo_parsers_v2::{REGISTERED_FAMILIES, REGISTERED_UNIFIED_FAMILIES};

    use super::*;

    #[test]
    fn every_parser_named_is_there() {
        for (dialect, _) in PARSERS {
            for peer in Peer::ALL {
                let Some(parser) = peer.parser(dialect) else { continue };
                let there = match peer {
                    Peer::Dynamo => dynamo::parsers().contains(&parser),
                    Peer::DynamoV2 => REGISTERED_FAMILIES.contains(&parser),
                    Peer::DynamoV2Unified => REGISTERED_UNIFIED_FAMILIES.contains(&parser),
                    Peer::ToolParser => smg::has(parser),
                };
                assert!(there, "{} has no parser {parser}", peer.title());
            }
        }
    }
}
