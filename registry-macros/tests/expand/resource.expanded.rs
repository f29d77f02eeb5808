/// Opens the shop.
async fn shop(
    settings: Settings<Shop>,
    http: Resource<Client>,
    log: Option<Resource<Log>>,
) -> Result<Option<Open>, Oops> {
    open(settings, http, log).await
}
#[allow(non_upper_case_globals, unused_mut, deprecated)]
const _: () = {
    use ::registry_core::__private;
    const __SETTINGS: __private::OfSettings<Shop> = __private::of_settings::<Shop>();
    const __of_1: __private::Need<Client> = __private::need::<Client>();
    const __of_2: __private::Need<Log> = __private::need::<Log>();
    const __GIVES: __private::Gives<Open> = __private::gives::<Open>();
    const __RESOURCE: __private::ResourcePlugin = {
        let mut __resource = __private::ResourcePlugin::new(
            "shop",
            &__GIVES,
            __SETTINGS.taken,
            &[__of_1.asked(), __of_2.asked().optional()],
            __private::Make::Once(|__context, __settings| ::std::boxed::Box::pin(async move {
                __GIVES
                    .option_or(
                        shop(
                                __SETTINGS.take(__settings.as_ref())?,
                                __of_1.take(&__context)?,
                                __of_2.find(&__context),
                            )
                            .await,
                    )
            })),
            __private::Place {
                module_path: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
            },
        );
        __resource.table = ::core::option::Option::Some("shop");
        __resource.needs = ::core::option::Option::Some("the key");
        __resource.timeout = secs(5);
        __resource
    };
    __private::inventory::submit!(__RESOURCE);
};
fn till(ctx: &ToolContext, settings: Settings<Till>, shop: Resource<Open>) -> Drawer {
    Drawer::of(ctx, settings, shop)
}
#[allow(non_upper_case_globals, unused_mut, deprecated)]
const _: () = {
    use ::registry_core::__private;
    const __SETTINGS: __private::OfSettings<Till> = __private::of_settings::<Till>();
    const __of_2: __private::Need<Open> = __private::need::<Open>();
    const __GIVES: __private::Gives<Drawer> = __private::gives::<Drawer>();
    const __RESOURCE: __private::ResourcePlugin = {
        let mut __resource = __private::ResourcePlugin::new(
            "till",
            &__GIVES,
            __SETTINGS.taken,
            &[__of_2.asked()],
            __private::Make::ByRequest(|__context, __settings| {
                __GIVES
                    .value(
                        till(
                            __context,
                            __SETTINGS.take(__settings)?,
                            __of_2.take(__context)?,
                        ),
                    )
            }),
            __private::Place {
                module_path: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
            },
        );
        __resource
    };
    __private::inventory::submit!(__RESOURCE);
};
#[cfg(unix)]
fn clock() -> Option<Clock> {
    None
}
#[cfg(unix)]
#[allow(non_upper_case_globals, unused_mut, deprecated)]
const _: () = {
    use ::registry_core::__private;
    const __GIVES: __private::Gives<Clock> = __private::gives::<Clock>();
    const __RESOURCE: __private::ResourcePlugin = {
        let mut __resource = __private::ResourcePlugin::new(
            "clock",
            &__GIVES,
            __private::no_settings(),
            &[],
            __private::Make::Once(|_, _| __private::on_blocking_thread(move || {
                __GIVES.option(clock())
            })),
            __private::Place {
                module_path: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
            },
        );
        __resource
    };
    __private::inventory::submit!(__RESOURCE);
};
