#[derive(
    ::registry_core::__private::serde::Deserialize,
    ::registry_core::__private::schemars::JsonSchema
)]
/// A note.
#[derive(Debug)]
#[serde(deny_unknown_fields)]
#[serde(crate = "::registry_core::__private::serde")]
#[schemars(crate = "::registry_core::__private::schemars")]
struct Note {
    /// Where it goes.
    #[serde(default = "Note::__default_folder")]
    #[schemars(transform = ::registry_core::__private::pattern::<String>("^[a-z]+$"))]
    folder: String,
    /// How much it matters.
    #[serde(rename = "importance")]
    #[schemars(example = 2)]
    #[schemars(
        transform = ::registry_core::__private::range::<u8>(
            ::core::option::Option::Some(1),
            ::core::option::Option::Some(4),
            true
        )
    )]
    weight: Option<u8>,
    /// What opens it.
    #[schemars(
        transform = ::registry_core::__private::length::<String>(
            ::core::option::Option::Some(4),
            ::core::option::Option::Some(4),
            false
        )
    )]
    #[schemars(transform = ::registry_core::__private::Bound::Secret)]
    pin: Option<String>,
}
#[allow(non_snake_case)]
const _: () = {
    impl Note {
        fn __default_folder() -> String {
            <String as ::core::convert::From<&str>>::from("inbox")
        }
    }
};
#[derive(
    ::registry_core::__private::serde::Deserialize,
    ::registry_core::__private::schemars::JsonSchema,
    ::registry_core::__private::serde::Serialize
)]
#[serde(crate = "::registry_core::__private::serde")]
#[schemars(crate = "::registry_core::__private::schemars")]
enum Tone {
    Kind,
    Stern,
}
#[derive(
    ::registry_core::__private::serde::Serialize,
    ::registry_core::__private::schemars::JsonSchema
)]
#[serde(crate = "::registry_core::__private::serde")]
#[schemars(crate = "::registry_core::__private::schemars")]
struct Written {
    path: String,
}
/// Writes a note.
async fn write_note(note: Note) -> Written {
    note.write()
}
#[allow(non_upper_case_globals, non_snake_case, unused_mut, deprecated)]
const _: () = {
    use ::registry_core::__private;
    const __ARGUMENTS: __private::Whole<Note> = __private::whole::<Note>();
    const __RETURNS: __private::Returns<Written> = __private::returns::<Written>();
    fn __run<'__a>(
        _: &'__a __private::ToolContext,
        __given: __private::Map<::std::string::String, __private::Value>,
    ) -> __private::BoxFuture<
        '__a,
        ::core::result::Result<__private::ToolResult, __private::ToolError>,
    > {
        ::std::boxed::Box::pin(async move {
            let __value = __ARGUMENTS.take(__given)?;
            __RETURNS.give(write_note(__value).await)
        })
    }
    const __PLUGIN: __private::Plugin = {
        let mut __plugin = __private::Plugin::new(
            "write_note",
            "Writes a note.",
            || __ARGUMENTS.schema(),
            || __RETURNS.schema(),
            __run,
            __private::Place {
                module_path: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
            },
        );
        __plugin
    };
    __private::inventory::submit!(__PLUGIN);
};
