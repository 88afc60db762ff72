// Package golangci is a plugin for golangci-lint, for its module plugin system: a linter with the
// name zklockvet, which runs all analyzers of package zklockvet. The command golangci-lint custom builds a
// golangci-lint that has it, as .custom-gcl.yml says:
//
//	version: v2.15.0
//	plugins:
//	  - module: github.com/zklock/go-zklock/contrib/zklockvet
//	    import: github.com/zklock/go-zklock/contrib/zklockvet/golangci
//	    path: /path/to/clone/contrib/zklockvet # or a version
//
// And .golangci.yml turns it on:
//
//	linters:
//	  enable: [zklockvet]
//	  settings:
//	    custom:
//	      zklockvet:
//	        type: module
package golangci

import (
	"errors"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/zklock/go-zklock/contrib/zklockvet"
)

func init() { register.Plugin("zklockvet", newPlugin) }

// newPlugin makes the linter. It has no settings.
func newPlugin(settings any) (register.LinterPlugin, error) {
	if settings != nil {
		return nil, errors.New("zklockvet: the linter has no settings: remove them from .golangci.yml")
	}
	return plugin{}, nil
}

type plugin struct{}

// BuildAnalyzers implements register.LinterPlugin.
func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) { return zklockvet.Analyzers(), nil }

// GetLoadMode implements register.LinterPlugin.
func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
