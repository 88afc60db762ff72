package ginlock_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

func ExampleNew() {
	client, err := zklock.Open("mem://") // in production zk://host:port,host:port/root
	if err != nil {
		panic(err)
	}
	defer client.Close()

	router := gin.New()
	router.POST("/orders/:id/pay", ginlock.New(ginlock.ByParam(client, "id", "orders/%s")), func(c *gin.Context) {
		lock, _ := zklock.FromContext(c.Request.Context()) // this context ends if the lock is lost
		c.String(http.StatusOK, "paid under %s", lock.Name())
	})

	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequest("POST", "/orders/42/pay", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 200 paid under orders/42
}

func ExampleByParams() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	lock := ginlock.New(ginlock.ByParams(client, "events/%s/seats/%s", "event", "seat"))
	router := gin.New()
	router.POST("/events/:event/seats/:seat/book", lock, func(c *gin.Context) {
		held, _ := zklock.FromContext(c.Request.Context())
		c.String(http.StatusOK, "booked under %s", held.Name())
	})

	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequest("POST", "/events/gala/seats/7/book", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 200 booked under events/gala/seats/7
}

// One report at a time is made, whatever its year.
func ExampleByFullPath() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	router := gin.New()
	router.POST("/reports/:year", ginlock.New(ginlock.ByFullPath(client, "routes/%s")), func(c *gin.Context) {
		lock, _ := zklock.FromContext(c.Request.Context())
		c.String(http.StatusOK, "made under %s", lock.Name())
	})
	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequest("POST", "/reports/2026", nil))
	fmt.Println(w.Body)
	// Output: made under routes/reports/:year
}
