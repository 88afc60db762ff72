// Package oneline joins errors into one whose text is one line, as logs and operators need it.
package oneline

import "strings"

// Join returns an error that matches all the errors that are not nil, as errors.Join does. Its text has
// theirs with "; " between them. If there is one error, Join returns that; if there is none, nil.
func Join(errs ...error) error {
	var all joined
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return &all
}

type joined []error

// Error implements error.
func (j *joined) Error() string {
	texts := make([]string, len(*j))
	for i, err := range *j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors.
func (j *joined) Unwrap() []error { return *j }
