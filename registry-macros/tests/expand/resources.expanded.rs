/// Looks something up.
pub async fn look_up(
    http: Resource<HttpClient>,
    index: Resource<Index>,
    cache: Option<Resource<Cache>>,
) -> anyhow::Result<()> {
    Ok(())
}
#[allow(non_upper_case_globals, non_snake_case, unused_mut, deprecated)]
const _: () = {
    use ::registry_core::__private;
    use __private::Otherwise as _;
    const __of_http: __private::Parameter<Resource<HttpClient>> = <Resource<
        HttpClient,
    > as __private::FromCall<_>>::PARAMETER
        .named("http", "", __private::Type::<Resource<HttpClient>>::ABSENT);
    const _: () = __of_http
        .unless_provided(
            "tool `look_up`: the argument `http` has no doc comment\nhelp: say in `/// …` above it what the model is to give",
        );
    const __of_index: __private::Parameter<Resource<Index>> = <Resource<
        Index,
    > as __private::FromCall<_>>::PARAMETER
        .named("index", "", __private::Type::<Resource<Index>>::ABSENT);
    const _: () = __of_index
        .unless_provided(
            "tool `look_up`: the argument `index` has no doc comment\nhelp: say in `/// …` above it what the model is to give",
        );
    const __of_cache: __private::Parameter<Option<Resource<Cache>>> = <Option<
        Resource<Cache>,
    > as __private::FromCall<_>>::PARAMETER
        .named("cache", "", __private::Type::<Option<Resource<Cache>>>::ABSENT);
    const _: () = __of_cache
        .unless_provided(
            "tool `look_up`: the argument `cache` has no doc comment\nhelp: say in `/// …` above it what the model is to give",
        );
    const __RETURNS: __private::Returns<()> = __private::returns::<(), _>();
    fn __run<'__a>(
        __context: &'__a __private::ToolContext,
        __given: __private::Map<::std::string::String, __private::Value>,
    ) -> __private::BoxFuture<
        '__a,
        ::core::result::Result<__private::ToolResult, __private::ToolError>,
    > {
        __private::boxed(async move {
            let (__value_http, (__value_index, (__value_cache, ()))) = __private::take(
                (&__of_http, (&__of_index, (&__of_cache, ()))),
                __context,
                __given,
            )?;
            __RETURNS
                .give_or_fail(look_up(__value_http, __value_index, __value_cache).await)
        })
    }
    const __PARAMETERS: &[&dyn __private::Describe] = &[
        &__of_http,
        &__of_index,
        &__of_cache,
    ];
    const __PLUGIN: __private::Plugin = {
        let mut __plugin = __private::Plugin::new(
            "look_up",
            "Looks something up.",
            || __private::schema_of(__PARAMETERS),
            || __RETURNS.schema(),
            |__context| __private::missing(__PARAMETERS, __context),
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
