//! How the model is asked in a round.

use super::{ToolStyle, constrain::Constraint, offer::Round, prompt, raw::RawStyle, run::Run};

/// How the model is asked.
#[derive(Debug)]
pub(super) enum Style {
    /// Without tools.
    WithoutTools,
    /// With the tools in the fields of the API.
    Native,
    /// With the tools in the prompt, and perhaps with what keeps the model to calls of them.
    Prompt(Option<Constraint>),
    /// With a prompt from the model's own template.
    Raw(Box<RawStyle>),
}

impl Style {
    /// What keeps the model to calls.
    pub(super) fn constraint(&self) -> Option<&Constraint> {
        match self {
            Self::WithoutTools | Self::Native => None,
            Self::Prompt(constraint) => constraint.as_ref(),
            Self::Raw(raw) => raw.constraint.as_ref(),
        }
    }

    /// The only dialect in which calls are read, where `own` is the one of the settings.
    pub(super) fn dialect(&self, own: Option<&'static str>) -> Option<&'static str> {
        own.filter(|own| self.constraint().is_none_or(|constraint| constraint.dialect == *own))
    }
}

impl Run {
    /// How the model is asked now.
    pub(super) async fn style(&mut self, round: Round) -> Style {
        self.api = self.route.api().await;
        let with_tools = self.offer.has_tools() && !self.asks_for_form();
        if self.is_set_to_raw()
            && let Some(raw) = Box::pin(self.raw_style(round, with_tools)).await
        {
            return Style::Raw(raw);
        }
        if !with_tools {
            return Style::WithoutTools;
        }
        let kind = self.route.kind();
        let must_constrain = self.required.is_some()
            && self.tool_style() == ToolStyle::Auto
            && (self.missing() > 0 || kind.is_some_and(|kind| kind.ignores_tool_choice));
        if !self.prompt_style && !must_constrain {
            return Style::Native;
        }
        // The template that the model has learned with goes before words of this server's.
        if self.may_use_raw()
            && let Some(raw) = Box::pin(self.raw_style(round, true)).await
        {
            return Style::Raw(raw);
        }
        let dialect = self.dialect().unwrap_or(prompt::COMMON_DIALECT);
        Style::Prompt(self.constraint(round, Some(dialect), false).await)
    }
}
