//! README shows the example as it is.

#[cfg(test)]
mod readme {
    #[test]
    fn readme_shows_this_worker_line_for_line() {
        let readme = include_str!("../../../README.md");
        let source = include_str!("../src/main.rs");
        let shown: Vec<_> = readme
            .lines()
            .skip_while(|line| *line != "## A worker of your own")
            .skip_while(|line| *line != "```rust")
            .skip(1)
            .take_while(|line| *line != "```")
            .collect();
        let own: Vec<_> = source.lines().collect();
        assert_eq!(shown, own, "copy workers/echo/src/main.rs into README.md");
    }
}
