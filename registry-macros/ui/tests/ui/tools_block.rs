use registry_core::prelude::*;

struct Weather(u8);

#[tools]
impl Weather {
    /// Says what it is like.
    #[tool]
    async fn weather(&mut self) -> String {
        String::new()
    }

    /// Says what it was like.
    #[tool(timeot = secs(1))]
    async fn yesterday(self, other: &Self) -> String {
        let _ = (self.0, other);
        String::new()
    }
}

#[tools]
impl Weather {
    /// Says what it will be like.
    #[tool]
    async fn tomorrow(&self) -> String {
        String::new()
    }
}

#[tools]
impl Weather {
    fn none() {}
}

#[tools]
impl<T: Copy> Clone for Other<T> {
    fn clone(&self) -> Self {
        Other(self.0)
    }
}

#[tools]
struct Other<T>(T);

fn main() {}
