//! What a request allows of the tools that its caller may use.

use std::collections::HashMap;

use registry_core::{Caller, Registry, Tool, nearest};
use toolrack_apis::{
    BadRequest, Request,
    names::{WireNames, legal},
};

/// The caller as the field `toolrack` of a request narrows it. A tool may be given by either of its names.
pub(super) fn narrow(
    registry: &Registry,
    request: &Request,
    mut caller: Caller,
) -> Result<Caller, BadRequest> {
    let extension = &request.extension;
    if let Some(persona) = &extension.persona {
        let message = format!("there is no persona `{persona}` here; leave `toolrack.persona` out");
        return Err(BadRequest::new("toolrack.persona", message));
    }
    if extension.allowed_tools.is_none() && extension.allowed_modules.is_none() {
        return Ok(caller);
    }
    let selection = registry.select(&registry.context(caller.clone()));
    let usable: Vec<&Tool> = selection.tools().iter().map(AsRef::as_ref).collect();
    // One that is switched off for now is known all the same.
    let all = registry.list_all(true);
    if let Some(given) = &extension.allowed_tools {
        let mut wire = WireNames::reserving(request.tools.iter().map(|tool| tool.name.as_str()));
        wire.assign_all(usable.iter().map(|tool| tool.name()));
        let names = Names::of(all.iter().map(|tool| tool.name()));
        let find = |name: &str| names.own(name).or_else(|| wire.original(name)).or_else(|| names.legal(name));
        let known = usable.iter().map(|tool| tool.name());
        caller = caller.only_tools(resolve("toolrack.allowed_tools", "tool", given, find, known)?);
    }
    if let Some(given) = &extension.allowed_modules {
        let names = Names::of(all.iter().map(|tool| tool.module()));
        let find = |name: &str| names.own(name).or_else(|| names.legal(name));
        let known = usable.iter().map(|tool| tool.module());
        caller = caller.only_modules(resolve("toolrack.allowed_modules", "module", given, find, known)?);
    }
    Ok(caller)
}

/// The registry's names of tools or modules, gone through once: a request may name a thousand of them.
#[derive(Default)]
struct Names<'n> {
    own: HashMap<&'n str, &'n str>,
    legal: HashMap<String, &'n str>,
}

impl<'n> Names<'n> {
    fn of(all: impl Iterator<Item = &'n str>) -> Self {
        let mut names = Self::default();
        for name in all {
            if names.own.insert(name, name).is_none() {
                names.legal.entry(legal(name)).or_insert(name);
            }
        }
        names
    }

    fn own(&self, name: &str) -> Option<&'n str> {
        self.own.get(name).copied()
    }

    /// The first whose name is this one where only legal names may be.
    fn legal(&self, name: &str) -> Option<&'n str> {
        self.legal.get(name).copied()
    }
}

/// The registry's names for these.
fn resolve<'n>(
    param: &'static str,
    kind: &str,
    given: &[String],
    find: impl Fn(&str) -> Option<&'n str>,
    known: impl Iterator<Item = &'n str>,
) -> Result<Vec<String>, BadRequest> {
    let found: Result<Vec<String>, &String> =
        given.iter().map(|name| find(name).map(str::to_owned).ok_or(name)).collect();
    found.map_err(|name| {
        let near: Vec<String> = nearest(name, known).iter().map(|name| format!("`{name}`")).collect();
        let hint =
            if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
        BadRequest::new(param, format!("`{param}` names `{name}`, and there is no such {kind}{hint}"))
    })
}
