#[tools]
impl Weather {
    /// Says what it is like.
    #[tool(timeout = secs(1))]
    pub async fn weather(
        &self,
        /// Where.
        city: &str,
    ) -> String {
        self.ask(city).await
    }

    fn help(&self) {}
}
