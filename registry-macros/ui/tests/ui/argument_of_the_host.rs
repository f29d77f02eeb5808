use registry_core::prelude::*;

struct HttpClient;

/// Says hello.
#[tool]
async fn hello(http: HttpClient, client: &HttpClient, perhaps: Option<HttpClient>) -> String {
    let _ = (http, client, perhaps);
    String::new()
}

fn main() {}
