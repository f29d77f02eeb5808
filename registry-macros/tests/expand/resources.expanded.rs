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
    const __of_resource_0: __private::Need<HttpClient> = __private::need::<HttpClient>();
    const __of_resource_1: __private::Need<Index> = __private::need::<Index>();
    const __of_resource_2: __private::Need<Cache> = __private::need::<Cache>();
    const __RETURNS: __private::Returns<()> = __private::returns::<()>();
    fn __run<'__a>(
        __context: &'__a __private::ToolContext,
        _: __private::Map<::std::string::String, __private::Value>,
    ) -> __private::BoxFuture<
        '__a,
        ::core::result::Result<__private::ToolResult, __private::ToolError>,
    > {
        ::std::boxed::Box::pin(async move {
            __RETURNS
                .give_or_fail(
                    look_up(
                            __of_resource_0.take(__context)?,
                            __of_resource_1.take(__context)?,
                            __of_resource_2.find(__context),
                        )
                        .await,
                )
        })
    }
    const __PLUGIN: __private::Plugin = {
        let mut __plugin = __private::Plugin::new(
            "look_up",
            "Looks something up.",
            || __private::of_parameters(&[]),
            || __RETURNS.schema(),
            __run,
            __private::Place {
                module_path: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
            },
        );
        __plugin = __plugin
            .missing(|__context| {
                __of_resource_0
                    .missing(__context)
                    .or_else(|| __of_resource_1.missing(__context))
            });
        __plugin
    };
    __private::inventory::submit!(__PLUGIN);
};
