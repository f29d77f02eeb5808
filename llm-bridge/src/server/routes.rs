//! The routes, each with what `/openapi.json` says of it: none can be added without the other.

use std::sync::Arc;

use axum::{
    Router,
    handler::Handler,
    http::{StatusCode, header},
    middleware,
    routing::{self, MethodRouter},
};
use utoipa::openapi::HttpMethod;

use super::{App, access::check_key, identity::Identities, openapi::Operation};

/// Routes with their descriptions.
pub(super) struct Routes {
    router: Router<App>,
    operations: Vec<(&'static str, HttpMethod, Operation)>,
}

impl Routes {
    pub(super) fn new() -> Self {
        Self { router: Router::new(), operations: Vec::new() }
    }

    pub(super) fn get<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, App>,
        operation: Operation,
    ) -> Self {
        self.add(path, HttpMethod::Get, routing::get(handler), operation)
    }

    pub(super) fn post<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, App>,
        operation: Operation,
    ) -> Self {
        self.add(path, HttpMethod::Post, routing::post(handler), operation)
    }

    pub(super) fn delete<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, App>,
        operation: Operation,
    ) -> Self {
        self.add(path, HttpMethod::Delete, routing::delete(handler), operation)
    }

    /// What is only read and needs no key; asking what can be done with it needs none either.
    pub(super) fn open_to_all<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, App>,
        operation: Operation,
    ) -> Self {
        let options = operation.beside("options", "What can be done here");
        let options = options.answers_nothing(204, "`Allow` says it.");
        let methods = || async { (StatusCode::NO_CONTENT, [(header::ALLOW, "GET,HEAD,OPTIONS")]) };
        self.get(path, handler, operation).add(path, HttpMethod::Options, routing::options(methods), options)
    }

    fn add(
        mut self,
        path: &'static str,
        method: HttpMethod,
        route: MethodRouter<App>,
        operation: Operation,
    ) -> Self {
        self.operations.push((path, method, operation));
        Self { router: self.router.route(path, route), ..self }
    }

    pub(super) fn merge(mut self, other: Self) -> Self {
        self.operations.extend(other.operations);
        Self { router: self.router.merge(other.router), ..self }
    }

    /// Puts something before all routes that are there by now.
    pub(super) fn behind(self, layer: impl FnOnce(Router<App>) -> Router<App>) -> Self {
        Self { router: layer(self.router), ..self }
    }

    /// Lets only those in who are somebody.
    pub(super) fn behind_key(self, identities: Arc<Identities>) -> Self {
        let keyed =
            self.behind(|router| router.route_layer(middleware::from_fn_with_state(identities, check_key)));
        let operations = keyed.operations.into_iter();
        let operations =
            operations.map(|(path, method, operation)| (path, method, operation.behind_key())).collect();
        Self { operations, ..keyed }
    }

    pub(super) fn into_parts(self) -> (Router<App>, Vec<(&'static str, HttpMethod, Operation)>) {
        (self.router, self.operations)
    }
}
