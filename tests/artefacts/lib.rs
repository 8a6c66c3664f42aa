//! Servers and folders for tests of charts as artefacts.
