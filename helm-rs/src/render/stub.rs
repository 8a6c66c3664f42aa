//! Stands in for the executor until it is merged.
#![allow(missing_docs, clippy::pedantic)]
use gotemplate::{FunctionMap, Value};
use std::any::Any;
#[derive(Debug)]
pub struct Set;
impl Set {
    pub fn new(_: FunctionMap) -> Self {
        Self
    }
    pub fn set_missing_key(&mut self, _: bool) {}
    pub fn parse(&mut self, _: &str, _: &[u8]) -> Result<(), Vec<u8>> {
        Ok(())
    }
    pub fn execute(
        &self,
        _: &str,
        _: &Value,
        _: &mut dyn Any,
        _: &mut Vec<u8>,
    ) -> Result<(), Vec<u8>> {
        Ok(())
    }
}
