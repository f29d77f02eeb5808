//! The settings that serve a model best.

use std::path::PathBuf;

use serde::Serialize;
use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use super::{
    calls::{Native, Text, Way, is_seldom},
    raw::Raw,
};
use crate::turn::{ChatSettings, ModelRoute, ToolStyle, prompt::COMMON_DIALECT};

/// The table of the configuration file.
const MODELS: &str = "models";

/// Settings of one model. What is `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Best {
    pub(super) tool_style: Option<ToolStyle>,
    pub(super) dialect: Option<&'static str>,
    pub(super) route: Option<ModelRoute>,
    pub(super) template: Option<PathBuf>,
}

impl Best {
    /// The settings for the best way to have a model call, which is right so often, beside those that are in force; none where it is
    /// right too seldom to tell.
    pub(super) fn of(
        best: Option<(Way, u32)>,
        native: &Native,
        text: &Text,
        raw: &Raw,
        chat: &ChatSettings,
        model: &str,
    ) -> Self {
        let Some((way, right)) = best.filter(|(_, right)| !is_seldom(*right)) else { return Self::default() };
        let (style, dialect) = (chat.tool_style_of(model), chat.dialect_of(model));
        let is_raw = chat.models.route(model) == Some(ModelRoute::Raw);
        let by_chat = Self { route: is_raw.then_some(ModelRoute::Chat), ..Self::default() };
        match way {
            Way::Raw => Self {
                route: Some(ModelRoute::Raw),
                template: raw.file.clone(),
                // Unless one is set, calls are read in all.
                dialect: raw.dialect.filter(|seen| dialect.is_some_and(|set| set != *seen)),
                ..Self::default()
            },
            Way::Native => Self {
                // Falls back where the server refuses tools, as it may for some requests.
                tool_style: (style == ToolStyle::Prompt).then_some(ToolStyle::Auto),
                dialect: match native.dialects.as_slice() {
                    // Unless one is set, calls are read in all.
                    [(first, _), ..] if native.native == 0 && dialect.is_some() => Some(*first),
                    _ => None,
                },
                ..by_chat
            },
            Way::Prompt(best) => {
                // In the common dialect tools are described in any case, and what is not set is read in all.
                let reads_all = best == COMMON_DIALECT && text.right_in_any > right && dialect.is_none();
                let dialect = (!reads_all).then_some(best);
                Self { tool_style: Some(ToolStyle::Prompt), dialect, ..by_chat }
            }
        }
    }

    /// The keys with their values.
    fn keys(&self) -> impl Iterator<Item = (&'static str, String)> {
        let template = self.template.as_ref().map(|file| file.display().to_string());
        [
            ("tool_style", self.tool_style.map(|style| <&str>::from(style).to_owned())),
            ("dialect", self.dialect.map(str::to_owned)),
            ("route", self.route.map(|route| <&str>::from(route).to_owned())),
            ("template", template),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
    }

    /// The settings as they stand in the configuration file; `None` where none are needed.
    pub(super) fn toml(&self, model: &str) -> Option<String> {
        let mut document = DocumentMut::new();
        let changes = self.put(&mut document, model).ok()?;
        (!changes.is_empty()).then(|| document.to_string())
    }

    /// Puts them into a configuration file; what has changed, in words.
    ///
    /// # Errors
    /// When the file has something else at their place.
    pub(super) fn put(&self, document: &mut DocumentMut, model: &str) -> Result<Vec<String>, String> {
        if self.keys().next().is_none() {
            return Ok(Vec::new());
        }
        let mut models = Table::new();
        models.set_implicit(true);
        let models = document.entry(MODELS).or_insert(Item::Table(models));
        let models = table_like(models).ok_or_else(|| format!("`{MODELS}` is not a table"))?;
        let settings = models.entry(model).or_insert_with(|| Item::Table(Table::new()));
        let settings =
            table_like(settings).ok_or_else(|| format!("`{MODELS}.\"{model}\"` is not a table"))?;
        let mut changes = Vec::new();
        for (key, new) in self.keys() {
            let before = settings.get(key).map(|before| before.as_str().unwrap_or_default().to_owned());
            match before {
                Some(before) if before == new => continue,
                Some(before) => changes.push(format!("{key} = \"{new}\" in place of \"{before}\"")),
                None => changes.push(format!("{key} = \"{new}\"")),
            }
            match settings.get_mut(key).and_then(Item::as_value_mut) {
                // The comment behind it stays.
                Some(old) => {
                    let decor = old.decor().clone();
                    *old = new.as_str().into();
                    *old.decor_mut() = decor;
                }
                None => drop(settings.insert(key, value(new))),
            }
        }
        Ok(changes)
    }
}

fn table_like(item: &mut Item) -> Option<&mut dyn TableLike> {
    item.as_table_like_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::{ModelSettings, Models};

    /// What is recommended where so many calls were right natively, in the text, with the tools in the prompt, and by the raw route.
    fn best(
        native: u32,
        dialects: &[(&'static str, u32)],
        text: Option<(&'static str, u32)>,
        raw: &Raw,
        chat: &ChatSettings,
    ) -> Best {
        let right = native + dialects.iter().map(|(_, right)| right).sum::<u32>();
        let native =
            Native { right, native, dialects: dialects.to_vec(), is_refused: false, in_pieces: None };
        let text = Text { best: text, right_in_any: 3 };
        let is_raw = chat.models.route("m") == Some(ModelRoute::Raw);
        Best::of(Way::best(&native, &text, raw, is_raw), &native, &text, raw, chat, "m")
    }

    #[test]
    fn b16_settings_are_the_fewest_that_serve() {
        let usual = ChatSettings::default();
        let in_prompt =
            ChatSettings { tool_style: ToolStyle::Prompt, dialect: Some("glm45"), ..ChatSettings::default() };
        let (auto, prompt) = (Some(ToolStyle::Auto), Some(ToolStyle::Prompt));
        for (native, dialects, text, chat, tool_style, dialect) in [
            (3, &[][..], Some(("hermes", 3)), &usual, None, None),
            (2, &[("hermes", 1)], None, &usual, None, None),
            (3, &[], None, &in_prompt, auto, None),
            // Reading all was right already, and the model may write in another one.
            (0, &[("mistral", 3)], Some(("mistral", 3)), &usual, None, None),
            (0, &[("mistral", 3)], None, &in_prompt, auto, Some("mistral")),
            (0, &[("mistral", 2), ("hermes", 1)], None, &usual, None, None),
            (0, &[("mistral", 2), ("hermes", 1)], None, &in_prompt, auto, Some("mistral")),
            (0, &[("mistral", 2)], Some(("mistral", 3)), &usual, prompt, Some("mistral")),
            (0, &[], Some(("hermes", 3)), &usual, prompt, Some("hermes")),
            // Some of its calls are in other dialects, and read where none is set.
            (0, &[], Some(("hermes", 2)), &usual, prompt, None),
            (0, &[], Some(("hermes", 2)), &in_prompt, prompt, Some("hermes")),
            (1, &[], None, &in_prompt, None, None),
            (0, &[], Some(("hermes", 1)), &usual, None, None),
            (0, &[], None, &usual, None, None),
        ] {
            let expected = Best { tool_style, dialect, ..Best::default() };
            let best = best(native, dialects, text, &Raw::default(), chat);
            assert_eq!(best, expected, "{native} {dialects:?} {text:?}");
        }
    }

    #[test]
    fn b16_the_raw_route_is_set_where_the_model_is_right_more_often_by_it() {
        let usual = ChatSettings::default();
        let in_glm = ChatSettings { dialect: Some("glm45"), ..ChatSettings::default() };
        let settings = ModelSettings { route: Some(ModelRoute::Raw), ..ModelSettings::default() };
        let models =
            Models::try_from(std::collections::BTreeMap::from([("m".to_owned(), settings)])).unwrap();
        let set = ChatSettings { models, ..ChatSettings::default() };
        let (raw, back) = (Some(ModelRoute::Raw), Some(ModelRoute::Chat));
        for (native, text, by_raw, file, chat, route, dialect) in [
            (0, None, 3, None, &usual, raw, None),
            (2, Some(("hermes", 2)), 3, None, &usual, raw, None),
            (0, None, 3, Some("m.jinja"), &usual, raw, None),
            (0, None, 2, None, &in_glm, raw, Some("hermes")),
            (3, None, 3, None, &usual, None, None),
            (0, None, 1, None, &usual, None, None),
            // What is set stays where it is no worse.
            (3, None, 3, None, &set, raw, None),
            (3, None, 2, None, &set, back, None),
        ] {
            let seen =
                Raw { right: by_raw, dialect: Some("hermes"), file: file.map(PathBuf::from), model: None };
            let expected = Best { route, dialect, template: file.map(PathBuf::from), ..Best::default() };
            assert_eq!(best(native, &[], text, &seen, chat), expected, "{native} {text:?} {by_raw}");
        }
        let seen = Raw { right: 3, file: Some("/m.jinja".into()), ..Raw::default() };
        let written = best(0, &[], None, &seen, &usual).toml("m").unwrap();
        assert_eq!(written, "[models.m]\nroute = \"raw\"\ntemplate = \"/m.jinja\"\n");
        assert!(toml::from_str::<ModelSettings>(written.trim_start_matches("[models.m]")).is_ok());
    }

    const BEST: Best =
        Best { tool_style: Some(ToolStyle::Prompt), dialect: Some("pythonic"), route: None, template: None };

    fn put(text: &str) -> (String, Vec<String>) {
        let mut document: DocumentMut = text.parse().unwrap();
        let changes = BEST.put(&mut document, "qwen3:8b").unwrap();
        (document.to_string(), changes)
    }

    #[test]
    fn b16_settings_are_put_beside_what_is_there() {
        let (text, changes) = put("# Mine.\nlisten = \":7331\" # here\n\n[limits]\nmax_rounds = 3\n");
        assert_eq!(
            text,
            "# Mine.\nlisten = \":7331\" # here\n\n[limits]\nmax_rounds = 3\n\n[models.\"qwen3:8b\"]\ntool_style = \"prompt\"\ndialect = \"pythonic\"\n"
        );
        assert_eq!(changes, ["tool_style = \"prompt\"", "dialect = \"pythonic\""]);
        assert_eq!(put(&text), (text.clone(), Vec::new()), "the second time nothing changes");
    }

    #[test]
    fn b16_settings_that_differ_are_replaced_with_their_comments_kept() {
        let before = "[models.\"qwen3:8b\"]\n# Why.\ndialect = \"hermes\" # so\n\n[models.other]\ndialect = \"glm45\"\n";
        let (text, changes) = put(before);
        assert_eq!(
            text,
            "[models.\"qwen3:8b\"]\n# Why.\ndialect = \"pythonic\" # so\ntool_style = \"prompt\"\n\n[models.other]\ndialect = \"glm45\"\n"
        );
        assert_eq!(changes, ["tool_style = \"prompt\"", "dialect = \"pythonic\" in place of \"hermes\""]);
        for before in [
            "models = {}\n",
            "models.\"qwen3:8b\".dialect = \"hermes\"\n",
            "[models]\n\"qwen3:8b\" = { dialect = \"hermes\" }\n",
        ] {
            let (text, _) = put(before);
            let read: toml::Table = text.parse().unwrap();
            assert_eq!(read["models"]["qwen3:8b"]["tool_style"].as_str(), Some("prompt"), "{text}");
            assert_eq!(read["models"]["qwen3:8b"]["dialect"].as_str(), Some("pythonic"), "{text}");
        }
        for broken in ["models = 1", "models.\"qwen3:8b\" = true"] {
            let mut document: DocumentMut = broken.parse().unwrap();
            assert!(BEST.put(&mut document, "qwen3:8b").unwrap_err().contains("not a table"), "{broken}");
        }
    }
}
