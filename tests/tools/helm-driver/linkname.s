// An assembly file lets the compiler accept the body-less functions of ops_template.go.
