//! Numbers: conversion, arithmetic, ranges.

use gotemplate::FunctionMap;

pub(super) fn register(functions: &mut FunctionMap) {
    let _ = functions;
}
