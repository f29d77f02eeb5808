/// Forgets everything.
#[cfg(feature = "forget")]
async fn forget() {}
#[cfg(feature = "forget")]
#[allow(non_upper_case_globals, non_snake_case, unused_mut, deprecated)]
const _: () = {
    use core_of_tools::__private;
    const __RETURNS: __private::Returns<()> = __private::returns::<()>();
    fn __run<'__a>(
        _: &'__a __private::ToolContext,
        _: __private::Map<::std::string::String, __private::Value>,
    ) -> __private::BoxFuture<
        '__a,
        ::core::result::Result<__private::ToolResult, __private::ToolError>,
    > {
        ::std::boxed::Box::pin(async move { __RETURNS.give(forget().await) })
    }
    const __PLUGIN: __private::Plugin = {
        let mut __plugin = __private::Plugin::new(
            "forget",
            "Forgets everything.",
            || __private::of_parameters(&[]),
            || __RETURNS.schema(),
            __run,
            __private::Place {
                module_path: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
            },
        );
        __plugin = __plugin.name("forget_all");
        __plugin = __plugin.title("Forget");
        __plugin = __plugin.version("1.2.0-rc.1");
        __plugin = __plugin.tags(&["memory", "danger"]);
        __plugin = __plugin.permission(Permission::Owner);
        __plugin = __plugin.cost(Cost::Cheap);
        __plugin = __plugin.timeout(secs(10));
        __plugin = __plugin.cooldown(minutes(1));
        __plugin = __plugin.daily_limit(3);
        __plugin = __plugin.gate(true);
        __plugin = __plugin.effect(Effect::Destructive);
        __plugin = __plugin.idempotent(true);
        __plugin = __plugin.deferred(true);
        __plugin = __plugin.text_tag(__private::TextTag::new("FORGET"));
        __plugin = __plugin.enabled(|ctx| ctx.caller().level > Permission::Admin);
        __plugin = __plugin.deprecated("use `forget`");
        __plugin
    };
    __private::inventory::submit!(__PLUGIN);
};
