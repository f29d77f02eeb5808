//! What a request allows of the tools that its caller may use.

use registry_core::{Caller, Registry, Tool};

use crate::provider::{
    names::{WireNames, legal},
    openai::{BadRequest, ChatRequest},
};

/// How many names are offered in place of an unknown one.
const NEAREST: usize = 3;

/// The caller as the field `toolrack` of a request narrows it. A tool may be given by either of its names.
pub(super) fn narrow(
    registry: &Registry,
    request: &ChatRequest,
    mut caller: Caller,
) -> Result<Caller, BadRequest> {
    let extension = &request.toolrack;
    if extension.allowed_tools.is_none() && extension.allowed_modules.is_none() {
        return Ok(caller);
    }
    let selection = registry.select(&registry.context(caller.clone()));
    let usable: Vec<&Tool> = selection.tools().iter().map(AsRef::as_ref).collect();
    // One that is switched off for now is known all the same.
    let all = registry.list_all(true);
    if let Some(given) = &extension.allowed_tools {
        let mut wire = WireNames::reserving(request.tools.iter().map(|tool| tool.name.as_str()));
        usable.iter().for_each(|tool| drop(wire.assign(tool.name())));
        let find = |name: &str| {
            let own = all.iter().map(|tool| tool.name()).find(|own| *own == name);
            let known = own.or_else(|| wire.original(name));
            known.or_else(|| all.iter().map(|tool| tool.name()).find(|own| legal(own) == name))
        };
        let known = usable.iter().map(|tool| tool.name());
        caller = caller.only_tools(resolve("toolrack.allowed_tools", "tool", given, find, known)?);
    }
    if let Some(given) = &extension.allowed_modules {
        let find = |name: &str| {
            all.iter().map(|tool| tool.module()).find(|module| *module == name || legal(module) == name)
        };
        let known = usable.iter().map(|tool| tool.module());
        caller = caller.only_modules(resolve("toolrack.allowed_modules", "module", given, find, known)?);
    }
    Ok(caller)
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
        let near = nearest(name, known);
        let hint =
            if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
        BadRequest { param, message: format!("`{param}` names `{name}`, and there is no such {kind}{hint}") }
    })
}

/// The names that take the fewest changes to become, of those that have more in common than not.
fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut scored: Vec<(usize, &str)> = known
        .map(|known| (changes(name, known), known))
        .filter(|(changes, known)| 2 * changes <= name.chars().count().max(known.chars().count()))
        .collect();
    scored.sort_unstable();
    scored.dedup();
    scored.into_iter().take(NEAREST).map(|(_, known)| format!("`{known}`")).collect()
}

/// How many characters have to be added, left out or replaced to make one text the other.
fn changes(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, from) in one.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        let mut left = line + 1;
        next.push(left);
        for (pair, to) in row.windows(2).zip(&other) {
            let [corner, above] = pair else { continue };
            left = (left + 1).min(above + 1).min(corner + usize::from(from != *to));
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{changes, nearest};

    #[test]
    fn near_names_are_found() {
        for (one, other, count) in
            [("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("ö", "o", 1), ("a", "a", 0)]
        {
            assert_eq!(changes(one, other), count, "{one} {other}");
        }
        assert_eq!(
            nearest("math.gdc", ["add", "math.gcd", "math.lcm"].into_iter()),
            ["`math.gcd`", "`math.lcm`"]
        );
        assert!(nearest("x", ["add"].into_iter()).is_empty());
    }
}
