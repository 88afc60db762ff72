// Package corekit has what the tests of package zklock share with those of its internal packages.
package corekit
