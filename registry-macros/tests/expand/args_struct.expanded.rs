const _: () = {
    ::registry_core::__private::readable::<String>();
    ::registry_core::__private::readable::<Option<u8>>();
    ::registry_core::__private::readable::<Option<String>>();
};
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
    #[schemars(
        transform = <String
        as::registry_core::__private::Text>::pattern("^[a-z]+$")
    )]
    folder: String,
    /// How much it matters.
    #[serde(rename = "importance")]
    #[schemars(example = &2)]
    #[schemars(
        transform = <Option<u8>as::registry_core::__private::Number>::range(
            ::core::option::Option::Some(1),
            ::core::option::Option::Some(4),
            true
        )
    )]
    weight: Option<u8>,
    /// What opens it.
    #[schemars(
        transform = <Option<String>as::registry_core::__private::Counted>::length(
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
            use ::registry_core::__private::Otherwise as _;
            ::registry_core::__private::Type::<
                String,
            >::of(::registry_core::__private::FromText::from_text("inbox"))
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
const _: () = {
    ::registry_core::__private::writable::<String>();
};
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
    use __private::Otherwise as _;
    static __of_note: __private::Parameter<Note> = <Note as __private::Argument>::WHOLE;
    static __RETURNS: __private::Returns<Written> = __private::returns::<Written, _>();
    fn __run<'__a>(
        __context: &'__a __private::ToolContext,
        __given: __private::Given,
    ) -> __private::ToolFuture<'__a> {
        __private::boxed(async move {
            let (__value_note, ()) = __private::take(
                (&__of_note, ()),
                __context,
                __given,
            )?;
            __RETURNS.give(write_note(__value_note).await)
        })
    }
    __private::inventory::submit!(
        { let mut __plugin = __private::Plugin::new("write_note", "Writes a note.", & [&
        __of_note], __RETURNS.schema, __run, __private::Place { module_path :
        ::core::module_path!(), file : ::core::file!(), line : ::core::line!(), },);
        __plugin }
    );
};
