//! The macros of `registry-core`, which re-exports them: a tool file names that crate only.
//!
//! `attr`, `keys`, `names`, `signature`, `param`, `returns`, `literal`, `example` and `docs` read, `errors` collects what is wrong, `expand`, `methods`,
//! `resource`, `data` and `discover` write. `forgotten` looks into files for what no macro is asked about.
//! Nothing here knows about schemas or JSON: the output calls generic functions of the core.

mod attr;
mod data;
mod discover;
mod docs;
mod errors;
mod example;
mod expand;
mod forgotten;
#[cfg(test)]
#[path = "tests/golden.rs"]
mod golden;
mod keys;
mod literal;
mod methods;
mod names;
mod nearest;
mod param;
mod resource;
mod returns;
mod signature;

use proc_macro::TokenStream;

/// Makes an `async fn` a tool.
///
/// The name is the function's. The description is the first paragraph of its doc comment; the other paragraphs are for
/// people. Each parameter is an argument and needs a doc comment, save `&ToolContext` (the request) and `Resource<T>`
/// (what the host provides); or one parameter, marked `#[args]`, takes all arguments. The keys of the attribute are the
/// fields of `registry_core::Plugin` and of its policy, and `crate = path` where the dependency has another name.
///
/// `example = "What is the weather in Oslo?" => {"city": "Oslo"}` shows what a person asks and the call that answers it. It can be
/// repeated. Examples are not shown to the model.
///
/// On a parameter: `#[arg(default = 3, range = 1..=14, length = 1..=20, pattern = "…", rename = "…", example = 5)]`.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(attribute.into(), &item.into()).into()
}

/// Makes a function one that provides what tools ask for with `Resource<T>`, where `T` is what it returns.
///
/// It returns `T`, `Option<T>` (`None` where there is nothing to provide), `Result<T, E>` or `Result<Option<T>, E>`. Without a value the
/// tools that need it are off, with the reason. Its parameters are `Settings<T>`, a table of the configuration; `Resource<T>` and
/// `Option<Resource<T>>`, other resources; and `&ToolContext`, the request. An `async fn` or `fn` runs once, at the start, a plain one where it
/// may block; a `fn` with `&ToolContext` runs for each request. The keys of the attribute are the fields of
/// `registry_core::ResourcePlugin`, and `crate = path` where the dependency has another name.
#[proc_macro_attribute]
pub fn resource(attribute: TokenStream, item: TokenStream) -> TokenStream {
    resource::resource(attribute.into(), &item.into()).into()
}

/// Makes the methods of an `impl` block that have `#[tool]` tools. `&self` is what the host provides for the type, as a `Resource` of it: without
/// one they are off.
#[proc_macro_attribute]
pub fn tools(attribute: TokenStream, item: TokenStream) -> TokenStream {
    methods::tools(&attribute.into(), &item.into()).into()
}

/// Makes a struct or an enum something that a model can give to a tool.
///
/// Adds `Deserialize` and `JsonSchema` (and `Serialize` to an enum of plain names), where the type does not derive them
/// itself. The fields need doc comments and take `#[arg(…)]` as a tool's parameters do. Goes above `#[derive(…)]`.
#[proc_macro_attribute]
pub fn args(attribute: TokenStream, item: TokenStream) -> TokenStream {
    data::args(attribute.into(), item.into()).into()
}

/// Makes a struct or an enum something that a tool can return: adds `Serialize` and `JsonSchema`. Goes above
/// `#[derive(…)]`.
#[proc_macro_attribute]
pub fn output(attribute: TokenStream, item: TokenStream) -> TokenStream {
    data::output(attribute.into(), item.into()).into()
}

/// Declares every file beside this one as a module, and every folder of them as a module of tools.
///
/// `discover!()` takes the folder of the file it is written in, `discover!("tools")` one below the crate's root. What
/// begins with `_` is left out. The build script has to watch the folder, with `toolrack_build::tools("tools")`. That also finds the crates
/// of tools among the dependencies; their tools become modules that are named after them.
#[proc_macro]
pub fn discover(input: TokenStream) -> TokenStream {
    discover::discover(input.into()).into()
}
