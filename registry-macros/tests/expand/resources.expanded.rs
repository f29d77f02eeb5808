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
    static __of_http: __private::Parameter<Resource<HttpClient>> = __private::Parameter::unless_provided(
        <Resource<HttpClient> as __private::FromCall<_>>::PARAMETER
            .named("http", "", __private::Type::<Resource<HttpClient>>::ABSENT),
        "tool `look_up`: the argument `http` has no doc comment\nhelp: say in `/// …` above it what the model is to give",
    );
    static __of_index: __private::Parameter<Resource<Index>> = __private::Parameter::unless_provided(
        <Resource<Index> as __private::FromCall<_>>::PARAMETER
            .named("index", "", __private::Type::<Resource<Index>>::ABSENT),
        "tool `look_up`: the argument `index` has no doc comment\nhelp: say in `/// …` above it what the model is to give",
    );
    static __of_cache: __private::Parameter<Option<Resource<Cache>>> = __private::Parameter::unless_provided(
        <Option<Resource<Cache>> as __private::FromCall<_>>::PARAMETER
            .named("cache", "", __private::Type::<Option<Resource<Cache>>>::ABSENT),
        "tool `look_up`: the argument `cache` has no doc comment\nhelp: say in `/// …` above it what the model is to give",
    );
    static __RETURNS: __private::Returns<()> = __private::returns::<(), _>();
    fn __run<'__a>(
        __context: &'__a __private::ToolContext,
        __given: __private::Given,
    ) -> __private::ToolFuture<'__a> {
        __private::boxed(async move {
            let (__value_http, (__value_index, (__value_cache, ()))) = __private::take(
                (&__of_http, (&__of_index, (&__of_cache, ()))),
                __context,
                __given,
            )?;
            let __done = look_up(__value_http, __value_index, __value_cache).await;
            __RETURNS.give_or_fail(__done)
        })
    }
    __private::inventory::submit!(
        { let mut __plugin = __private::Plugin::new("look_up", "Looks something up.", &
        [& __of_http, & __of_index, & __of_cache], __RETURNS.schema, __run,
        __private::Place { module_path : ::core::module_path!(), file : ::core::file!(),
        line : ::core::line!(), },); __plugin }
    );
};
