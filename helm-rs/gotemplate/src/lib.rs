//! Go text/template for Rust: lexer, parser, compiled program, executor.
